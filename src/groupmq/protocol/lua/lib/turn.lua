--[[
The turn of an exclusive queue: only one worker at a time takes jobs, and the next worker begins when no job of the
previous one runs any more. It is stored in `meta` as {worker, epoch, deadline, taken}.

A turn begins with the first job taken while no lease is live, and ends with the call that leaves its worker without
one: the jobs of the turn are done, nothing is ready, or its last lease was lost. Taking and heartbeats move the
deadline to a lease from now, so it is never before the deadline of one of its jobs. A worker that froze loses its jobs
and with them the turn, and its outcomes are refused by their fences. The epoch grows with each turn. A request made in
an epoch that has ended takes nothing: the worker must wait for the marker again, behind the workers that already wait.
That hands over the turn.
]]
--- @include "lib/call"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/meta"
--- @include "lib/writes"
--- @include "lib/horizon"
--- @include "lib/stopping"
local turn = {}
--- @private
local WHOSE, EPOCH, DEADLINE, TAKEN = 1, 2, 3, 4

-- The turn with the changes of this call, false = no worker has it.
local function current()
  if call.turn == nil then call.turn = rules.exclusive and meta.turn or false end
  return call.turn
end

local function live_leases()
  return redis.call('ZCARD', K.active) - W.n_removed(K.active) + stopping.count()
end

local function store() W.hset(K.meta, 'turn', cmsgpack.pack(call.turn)) end

local function clear()
  W.hdel(K.meta, 'turn')
  W.unlink(K.wake_of .. call.turn[WHOSE])
  call.turn = false
end

function turn.worker()
  local held = current()
  return held and held[DEADLINE] > now and held[WHOSE] or nil
end

-- End the turn if it has no lease left, however the last one ended: another worker may begin.
function turn.end_if_idle()
  if current() and live_leases() == 0 and not W.is_put(K.leases) then
    clear()
    W.zadd(K.wake, 0, '0')
  end
end

-- How many of `wanted` jobs `worker` may take, `batch` per turn. `epoch`: of the turn it believes it has, 0 = none.
function turn.allowance(wanted, worker, batch, epoch)
  if not rules.exclusive then return wanted end
  batch = batch or wanted -- the worker started before the queue became exclusive
  local live, held = live_leases(), current()
  if held and live == 0 and (held[WHOSE] ~= worker or held[TAKEN] >= batch) then turn.end_if_idle() end
  held = current()
  if not held then
    if live > 0 then return 0 end
    if (epoch or 0) == 0 then return math.min(wanted, batch) end
    W.zadd(K.wake, 0, '0') -- it may have popped the marker, which the other workers still need
    return 0
  end
  if held[WHOSE] == worker then return math.max(0, math.min(wanted, batch - held[TAKEN])) end
  horizon.call_again(math.max(held[DEADLINE], now))
  return 0
end

-- Record that `worker` has taken `count` jobs. Returns the epoch of its turn, 0 = it has no turn.
function turn.took(worker, count, lease_ms)
  if not rules.exclusive then return 0 end
  if count > 0 then
    if not current() then
      meta.epoch = meta.epoch + 1
      call.turn = { worker, meta.epoch, 0, 0 }
    end
    local held = call.turn
    held[TAKEN], held[DEADLINE] = held[TAKEN] + count, now + lease_ms
    store()
  end
  turn.end_if_idle()
  return turn.epoch(worker)
end

function turn.epoch(worker)
  local held = current()
  return held and held[WHOSE] == worker and held[EPOCH] or 0
end

-- Renew the turn of `worker`. Returns true if its deadline had passed: work that became ready since then has woken
-- other workers and not this one, so it must be woken.
function turn.renew(worker, lease_ms)
  turn.end_if_idle() -- this heartbeat may have ended the last lease; a turn that is stored now would outlive it
  local held = current()
  if not (held and held[WHOSE] == worker) then return false end
  local was_over = held[DEADLINE] <= now
  held[DEADLINE] = now + lease_ms
  store()
  return was_over
end
