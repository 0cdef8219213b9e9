--[[
Runs that outlive their job: an operator has removed or failed a job whose handler was running, or has cancelled it and
the handler does not end. The job is gone, or has failed, at once. Its run keeps its slot in the group, and in the turn
of an exclusive queue, until the worker reports that the handler has ended, or until the lease would have ended.
Otherwise the next job of the group would start beside a handler that still runs.

  stopping  zset  fence of the run, by the time its lease ends
  stops     hash  fence of the run -> group (2 bytes of length, then the id), worker

`stopping` in `meta` is the earliest of these times, so that a call that has nothing to do here reads nothing.
]]
--- @include "lib/call"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/whole"
--- @include "lib/meta"
--- @include "lib/writes"
--- @include "lib/horizon"
--- @include "lib/group"
--- @include "lib/lease"
--- @include "lib/lease_changes"
--- @include "lib/mail"
local stopping = {}
--- @private

-- The changes of this call. begun: fence (text) -> {deadline, value}; ended: fence -> true; and their numbers.
local function changes()
  call.stopping = call.stopping or { begun = {}, ended = {}, n_begun = 0, n_ended = 0 }
  return call.stopping
end

-- How many stopping runs there are, with the changes of this call.
function stopping.count()
  local mine = changes()
  if not meta.stopping then return mine.n_begun end
  return redis.call('ZCARD', K.stopping) + mine.n_begun - mine.n_ended
end

-- End the lease of a job. Its run keeps its slot in the group until the handler has ended.
function stopping.add(id, l)
  local deadline = tonumber(redis.call('ZSCORE', K.active, id) or nil) or 0
  lease_changes.revoke(id)
  local g, worker = group.get(l.gid), lease.worker(l)
  mail.send(worker)
  if deadline <= now then return group.free(g, 1) end
  local mine = changes()
  mine.begun[whole(l.fence)] = { deadline, struct.pack('>I2', #l.gid) .. l.gid .. worker }
  mine.n_begun = mine.n_begun + 1
  group.touch(g)
  horizon.add(deadline)
end

-- Free the slot of a run whose handler has ended, or whose lease is over.
function stopping.finish(fence)
  local name, mine = whole(fence), changes()
  local value = mine.begun[name] and mine.begun[name][2]
  if value then
    mine.begun[name], mine.n_begun = nil, mine.n_begun - 1
  elseif meta.stopping and not mine.ended[name] then
    value = redis.call('HGET', K.stops, name)
    if not value then return end
    mine.ended[name], mine.n_ended = true, mine.n_ended + 1
    W.zrem(K.stopping, name)
    W.hdel(K.stops, name)
  else
    return
  end
  group.free(group.get((struct.unpack('>I2c0', value))), 1)
end

-- End runs whose lease is over. A deadline without a run, left by damage, is deleted too: it would be due forever.
function stopping.expire(fences)
  for i = 1, #fences do
    stopping.finish(tonumber(fences[i]))
    local mine = changes()
    if not mine.ended[fences[i]] then
      W.zrem(K.stopping, fences[i])
      mine.ended[fences[i]], mine.n_ended = true, mine.n_ended + 1
    end
  end
end

-- Fences of the runs that the worker must stop.
function stopping.of(worker)
  local found = {}
  if not meta.stopping then return found end
  local all = redis.call('HGETALL', K.stops)
  for i = 1, #all, 2 do
    local _, after = struct.unpack('>I2c0', all[i + 1])
    if string.sub(all[i + 1], after) == worker then found[#found + 1] = tonumber(all[i]) end
  end
  return found
end

-- The groups of all stored runs, for repair.
function stopping.groups()
  local gids = {}
  for i, value in ipairs(redis.call('HVALS', K.stops)) do gids[i] = (struct.unpack('>I2c0', value)) end
  return gids
end

local function first_stored(ended)
  local at, found = 0
  repeat
    found = redis.call('ZRANGE', K.stopping, at, at, 'WITHSCORES')
    at = at + 1
  until not found[1] or not ended[found[1]]
  return tonumber(found[2] or nil)
end

function stopping.note()
  local mine = call.stopping
  if mine.n_ended == 0 and next(mine.begun) == nil then return end
  local first = first_stored(mine.ended)
  for name, run in pairs(mine.begun) do
    W.zadd(K.stopping, whole(run[1]), name)
    W.hset(K.stops, name, run[2])
    if not first or run[1] < first then first = run[1] end
  end
  meta.stopping = first
end
