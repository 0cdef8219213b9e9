--[[
The turn of an exclusive queue: only one worker at a time takes jobs, and the next one begins when nothing of the last
one's runs any more. {worker, epoch, deadline, taken}, kept in `meta`.

A turn begins with the first job taken while no lease is live, and ends with the call that leaves its worker without
one: its batch is done, nothing is ready, or its last lease was lost. Taking and heartbeats move the deadline to a lease
from now, so it is never before that of a job; a holder that froze loses its jobs and with them the turn, and its
outcomes are refused by their tokens. The epoch grows with each turn. A request made in an epoch that has ended takes
nothing: the worker must queue up at the marker again, behind those who wait there, and that is the hand-over.
]]
--- @include "lib/meta"
--- @include "lib/horizon"
--- @include "lib/lease"
local turn = {}
--- @private
local HOLDER, EPOCH, DEADLINE, TAKEN = 1, 2, 3, 4
local current
if rules.exclusive then
  local raw = redis.call('HGET', K.meta, 'turn')
  current = raw and cmsgpack.unpack(raw)
end

local function live_leases() return redis.call('ZCARD', K.active) - W.noted('ZREM', K.active) end

local function store() W.hset(K.meta, 'turn', cmsgpack.pack(current)) end

local function clear()
  W.hdel(K.meta, 'turn')
  W.unlink(K.hail .. current[HOLDER])
  current = nil
end

function turn.holder() return current and current[DEADLINE] > now and current[HOLDER] or nil end
function turn.current() return current end

-- A turn without a lease is over, whatever ended the last one: somebody else may begin.
local function end_if_idle()
  if current and live_leases() == 0 and W.noted('HSET', K.leases) == 0 then
    clear()
    W.zadd(K.wake, 0, '0')
  end
end

-- How many of `wanted` jobs `worker` may take, in turns of `batch`. `epoch`: of the turn it believes to have, 0 = none.
function turn.allowance(wanted, worker, batch, epoch)
  if not rules.exclusive then return wanted end
  batch = batch or wanted -- a worker from before the queue became exclusive knows of no turns
  local live = live_leases()
  if current and live == 0 and (current[HOLDER] ~= worker or current[TAKEN] >= batch) then end_if_idle() end
  if not current then
    if live > 0 then return 0 end
    if (epoch or 0) == 0 then return math.min(wanted, batch) end
    W.zadd(K.wake, 0, '0') -- it may have come because of the marker, and must not take that away from the others
    return 0
  end
  if current[HOLDER] == worker then return math.max(0, math.min(wanted, batch - current[TAKEN])) end
  horizon.note(math.max(current[DEADLINE], now))
  return 0
end

-- After the taking: `count` jobs went to `worker`. Returns the epoch it is in, 0 = it has no turn.
function turn.took(worker, count, lease_ms)
  if not rules.exclusive then return 0 end
  if count > 0 then
    if not current then
      local epoch = (tonumber(redis.call('HGET', K.meta, 'epoch')) or 0) + 1
      W.hset(K.meta, 'epoch', W.whole(epoch))
      current = { worker, epoch, 0, 0 }
    end
    current[TAKEN], current[DEADLINE] = current[TAKEN] + count, now + lease_ms
    store()
  end
  end_if_idle()
  return turn.epoch(worker)
end

function turn.epoch(worker) return current and current[HOLDER] == worker and current[EPOCH] or 0 end

-- Whether the turn was over but for this: what has become ready since was told to all, and not to the holder.
function turn.renew(worker, lease_ms)
  if not (current and current[HOLDER] == worker) then return false end
  local was_over = current[DEADLINE] <= now
  current[DEADLINE] = now + lease_ms
  store()
  return was_over
end

if rules.exclusive then W.before_commit[#W.before_commit + 1] = end_if_idle end
