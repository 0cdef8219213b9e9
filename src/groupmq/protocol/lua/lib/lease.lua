--[[
A lease: the right to run one job until a deadline, proven by a fence that only grows. It is data (a deadline in
`active`, a value in `leases`), never a key with a TTL, so a clock jump of the server cannot make it vanish.
The value has everything that the end of a run needs, so a completion reads neither the job's record nor its state.

A worker may take jobs before it has a slot for them: prefetched jobs. They have leases, but the server does not know at
first whether they have begun. Until it does, no event says that they are active. They come behind a job of their group
(transitions/take.lua) or are the heads of other groups (lib/reserve.lua).

For a job that was granted for a free slot, `active` is published at once. But the reply that brings it may still be on
its way, so until its worker confirms that the handler was called, an operation must ask first (lib/recall.lua).
Otherwise the handler could start after `remove` or `pause` has returned. A renewal of its lease confirms it too:
workers renew only the leases of runs whose handler was called.

  stage  BEGUN = the handler was called, GRANTED = for a free slot, not confirmed, FOLLOWS = prefetched behind a job of
         its group, RESERVED = prefetched as a group's head
]]
--- @include "lib/call"
--- @include "lib/keys"
--- @include "lib/seen"
local lease = { BEGUN = 0, GRANTED = 1, FOLLOWS = 2, RESERVED = 3 }
--- @private
local LEAST = 20 -- bytes of a lease before the id of its group, the last two of which are the length of that id

-- `call.over`: job id -> true if this call has ended its lease. `call.begun`: job id -> its lease, if this call reports
-- that the job has begun.
function lease.is_over(id) return call.over ~= nil and call.over[id] end

function lease.set_over(id)
  call.over = call.over or {}
  call.over[id] = true
end

-- The lease with the changes of this call, false if the call has ended it.
function lease.current(id, l) return not lease.is_over(id) and (call.begun and call.begun[id] or l) end

-- Fence, started, attempts, stalls, stage, group, where the name of the worker begins. Returned as values: a call may
-- read hundreds of leases, and a table for each would cost more than all other work on them. Nothing for a damaged
-- value, which counts as no lease: an error would stop every call that reads it.
function lease.fields(raw)
  local high, low = string.byte(raw, LEAST - 1, LEAST)
  if not low or #raw < LEAST + 256 * high + low then return nil end
  return struct.unpack('>I7I6I2I2BI2c0', raw)
end

-- Whether a job in this stage was prefetched.
function lease.is_prefetched(stage) return stage >= lease.FOLLOWS end

-- The fields of a lease, false if it is damaged. `prefetched`: the server does not know yet whether it has begun. The
-- name of the worker is cut out on demand, by lease.worker.
function lease.decode(raw)
  local fence, started, attempts, stalls, stage, gid, after = lease.fields(raw)
  if not fence then return false end
  return {
    fence = fence, started = started, attempts = attempts, stalls = stalls, prefetched = lease.is_prefetched(stage),
    begun = stage == lease.BEGUN, follows = stage == lease.FOLLOWS, gid = gid, raw = raw, after = after,
  }
end

-- The group of a lease, nil if it is damaged.
function lease.group_of(raw) return (select(6, lease.fields(raw))) end

function lease.worker(l) return string.sub(l.raw, l.after) end

-- Raw leases, false if missing. Only valid before this call has ended any lease.
function lease.stored(ids)
  if not ids[1] then return {} end
  seen.add(K.leases)
  return redis.call('HMGET', K.leases, unpack(ids))
end

-- The leases of `ids`, false if missing or ended by this call: a run that this call has reported as ended must not end
-- a second time because its deadline has passed.
function lease.load(ids)
  if #ids == 0 then return {} end
  local raw, untouched = lease.stored(ids), not (call.over or call.begun)
  for i = 1, #ids do
    local value = raw[i]
    if value then
      local l = lease.decode(value)
      raw[i] = untouched and l or lease.current(ids[i], l)
    end
  end
  return raw
end

-- The items of `list` whose indexes are not in `skipped`, which is sorted.
function lease.without(list, skipped)
  local left, n, next_skipped = {}, 0, 1
  for i = 1, #list do
    if skipped[next_skipped] == i then
      next_skipped = next_skipped + 1
    else
      n = n + 1
      left[n] = list[i]
    end
  end
  return left
end

-- The state of a job whose run under lease `l` has just ended, whatever the outcome.
function lease.state_after(l) return { l.attempts + 1, l.stalls, l.started, 0, lease.worker(l), '', '', l.fence } end
