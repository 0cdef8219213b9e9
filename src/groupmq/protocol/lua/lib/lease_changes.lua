--[[ Grant leases, end them, and record that a job has begun (lib/lease.lua). ]]
--- @include "lib/call"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/meta"
--- @include "lib/writes"
--- @include "lib/state"
--- @include "lib/lease"
local lease_changes = {}
--- @private

-- The value of a lease without its fence. `s`: the job's state, false if it never ran.
function lease_changes.pack(gid, worker, s, stage)
  local attempts, stalls = 0, 0
  if s then attempts, stalls = s[ATTEMPTS], s[STALLS] end
  return struct.pack('>I6I2I2BI2', now, attempts, stalls, stage, #gid) .. gid .. worker
end

-- The same for a job that never ran. `fresh`: the part that all such jobs of a call share (lease_changes.fresh).
function lease_changes.pack_fresh(fresh, gid, worker) return fresh .. struct.pack('>I2', #gid) .. gid .. worker end

function lease_changes.fresh(stage) return struct.pack('>I6I2I2B', now, 0, 0, stage) end

-- Grant a lease to each of `ids`, with the packed value at the same index. `deadline` is text: it and the values are
-- built once for many jobs. Returns the first fence; the fences are consecutive.
function lease_changes.grant(ids, packed, deadline)
  local deadlines, granted = {}, {}
  local first, with_fence = meta.next_stamps(#ids), struct.pack
  for i = 1, #ids do
    local id, at = ids[i], 2 * i
    deadlines[at - 1], deadlines[at] = deadline, id
    granted[at - 1], granted[at] = id, with_fence('>I7c0', first + i - 1, packed[i])
  end
  W.zadd_all(K.active, deadlines)
  W.hset_all(K.leases, granted)
  return first
end

-- Record that the handler of the job was called. The run may end in the same call.
function lease_changes.begin_run(id, l)
  l.prefetched, l.begun = false, true
  call.begun = call.begun or {}
  call.begun[id] = l
end

function lease_changes.revoke(id)
  W.zrem(K.active, id)
  W.hdel(K.leases, id)
  lease.set_over(id)
end

-- End those leases of `ids` that have these fences. Returns the ids of those, their leases in columns, and the indexes
-- of all others. The caller must not change the returned ids, because that list is sent later.
function lease_changes.redeem(ids, fences)
  local raw, refused, fields, over = lease.stored(ids), {}, lease.fields, call.over or {}
  local started, attempts, stages, gids, n = {}, {}, {}, {}, 0
  call.over = over
  for i = 1, #ids do
    local id, value = ids[i], raw[i]
    local fence, since, used, _, stage, gid
    if value and not over[id] then fence, since, used, _, stage, gid = fields(value) end
    if fence and fence == fences[i] then
      over[id] = true
      n = n + 1
      started[n], attempts[n], stages[n], gids[n] = since, used, stage, gid
    else
      refused[#refused + 1] = i
    end
  end
  if refused[1] then ids, raw = lease.without(ids, refused), lease.without(raw, refused) end
  W.zrem_all(K.active, ids)
  W.hdel_all(K.leases, ids)
  return ids, { raw = raw, started = started, attempts = attempts, stages = stages, gids = gids }, refused
end

function lease_changes.note()
  for id, l in pairs(call.begun) do
    if not lease.is_over(id) then
      local fixed = struct.pack('>I7I6I2I2B', l.fence, l.started, l.attempts, l.stalls, lease.BEGUN)
      W.hset(K.leases, id, fixed .. string.sub(l.raw, #fixed + 1))
    end
  end
end
