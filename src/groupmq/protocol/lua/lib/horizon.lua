--[[
The horizon: the next time at which something becomes due. Replies carry it, and idle workers sleep exactly until then.

`due` in `meta` is never later than the first time in `delayed`, `parked`, `active`, `expiring` and `stopping`: before
it, a call need not read these sets. It may be too early, because removing an entry does not move it; then the first
call at that time reads all sets, finds nothing due and corrects it. 0 = unknown.
]]
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/call"
--- @include "lib/meta"
local horizon = {}
--- @private

-- Ask the caller to call again at `time`.
function horizon.call_again(time)
  if not call.back_at or time < call.back_at then call.back_at = time end
end

-- Record that this call adds an entry with `time` to one of the sets.
function horizon.put(time)
  if not call.put_at or time < call.put_at then call.put_at = time end
end

-- The same; if `time` is earlier than everything due so far, sleeping workers are woken.
function horizon.add(time)
  if not call.added_at or time < call.added_at then call.added_at = time end
  horizon.put(time)
end

-- Record that this call reads all sets. The first time that it leaves in each of them is passed to `horizon.found`.
function horizon.look_at_all() call.first_at = tonumber(NEVER) end

function horizon.found(time)
  horizon.call_again(time)
  if call.first_at and time < call.first_at then call.first_at = time end
end

-- Whether something may be due by now.
function horizon.is_reached() return meta.due <= now end

-- Whether this call added something that is due earlier than everything known before.
function horizon.moved()
  local added = call.added_at
  return added ~= nil and (added < meta.due or meta.due == 0)
end

-- The value of `due` to store at the end of the call.
function horizon.due()
  local due, put = call.first_at or meta.due, call.put_at
  return put and put < due and put or due
end

-- Milliseconds until the caller should call again, -1 = nothing will become due.
function horizon.wait()
  local time = horizon.due()
  if call.back_at and call.back_at < time then time = call.back_at end
  return time < tonumber(NEVER) and math.max(0, time - now) or -1
end
