--[[
The ends of a run and of a job. Each transition exists here once; scripts, stall recovery and operators share them.
A run ends in exactly one of: completed, failed, back to its place (retry with a hold, stall, hand-back), or delayed
(retry that yields). All of them free the group's slot through `finish.end_run`.
]]
--- @include "lib/members"
--- @include "lib/lease"
--- @include "lib/state"
--- @include "lib/retention"
--- @include "lib/events"
--- @include "lib/cancels"
--- @include "lib/measure"
local finish = {}
--- @private
local NONE = {}

-- `n` runs of the group are over.
local function free(g, n)
  g.running = math.max(0, g.running - n)
  group.touch(g)
end

function finish.end_run(id, l)
  lease.revoke(id)
  free(group.get(l.gid), 1)
end

-- One line of the failure log; `s` already counts the attempt.
local function log_failure(id, s, final)
  local entry = { id, s[ATTEMPTS], s[REASON], s[STACK], now, final, s[WORKER] }
  W.push(K.failures, cmsgpack.pack(entry), FAILURES_KEPT)
end

-- A completed job that is kept.
local function keep_completed(id, l, result)
  local s = lease.state_after(l)
  s[FINISHED] = now
  state.save(id, s)
  if result then state.save_result(id, result) end
  retention.finished('completed', id)
end

-- Jobs that completed, told by `worker`: their leases, which have been redeemed, as they were stored; what they
-- returned (false = none did); how many completed jobs are kept. The commonest end, hence all of a call at once.
function finish.completed(ids, leases, results, keep, worker)
  local n, gids, attempts, sizes, aheads, any_ahead = #ids, {}, nil, nil, {}, false
  local g, gid_before, ended, behind, fields = nil, nil, 0, 0, lease.fields
  for i = 1, n do
    local id = ids[i]
    local _, started, attempts_before, _, ahead, gid = fields(leases[i])
    local same = gid == gid_before
    if same then
      ended = ended + 1
    else
      if g then free(g, ended) end
      g, gid_before, ended = group.get(gid), gid, 1
    end
    -- Those of a row that end together ran one after the other: the time of all of them is that of the first.
    if same and ahead == 1 then behind = behind + 1 else measure.run(now - started) end
    gids[i], aheads[i], any_ahead = gid, ahead, any_ahead or ahead == 1
    if attempts_before > 0 then
      attempts = attempts or {}
      attempts[i] = attempts_before + 1
    end
    local result = results and results[i]
    if result and events.on then
      sizes = sizes or {}
      sizes[i] = events.result(result, keep < 0 or keep >= n)
    end
    if keep ~= 0 then keep_completed(id, lease.decode(leases[i]), result) end
  end
  free(g, ended)
  if behind > 0 then measure.run(0, behind) end
  if keep == 0 then
    retention.forget_all(ids)
    for i in pairs(attempts or NONE) do state.forget(ids[i]) end
  end
  events.completed(ids, gids, attempts, sizes, any_ahead and aheads, worker)
end

-- Nobody has heard yet that this job, taken ahead, is running.
function finish.begun(id, l)
  if l.ahead then events.note('begun', id, l.gid, l.attempts + 1, lease.worker(l)) end
end

-- The job, of group `gid`, failed for good. It holds no lease any more.
function finish.failed(id, gid, s, reason, stack)
  s[FINISHED], s[REASON], s[STACK] = now, reason, stack
  state.save(id, s)
  log_failure(id, s, true)
  retention.finished('failed', id)
  W.count('failed', 1)
  events.note('failed', id, gid, s[ATTEMPTS], reason, stack)
end

-- Back to the very place the job was taken from.
function finish.put_back(id, rec)
  record.remember(id, rec)
  members.put(group.get(record.group_of(rec)), record.member(id, rec))
end

-- The job joins its group from outside, at the place its order gives it.
function finish.join(id, rec)
  gate.arrive(group.get(record.group_of(rec)))
  finish.put_back(id, rec)
end

function finish.delay(id, rec, time)
  local g = group.get(record.group_of(rec))
  g.delayed = g.delayed + 1
  group.touch(g)
  W.zadd(K.delayed, W.whole(time), id)
  horizon.note(time)
end

-- The attempt failed and another follows after `delay`: holding the group from its place, or outside of it.
function finish.retry(id, rec, s, how)
  s[REASON], s[STACK] = how.reason, how.stack
  state.save(id, s)
  log_failure(id, s, false)
  W.count('retried', 1)
  local gid = record.group_of(rec)
  events.note('retrying', id, gid, s[ATTEMPTS], how.delay, how.reason)
  if how.delay > 0 then horizon.add(now + how.delay) end
  if how.delay > 0 and (how.yield or gid == '') then
    finish.delay(id, rec, now + how.delay)
  else
    finish.put_back(id, rec)
    if how.delay > 0 then group.hold(group.get(gid), id, now + how.delay) end
  end
end

-- The handler came too often: its group rests, and the job waits at its place, no attempt used.
function finish.limited(id, rec, delay)
  local gid = record.group_of(rec)
  W.count('limited', 1)
  if delay > 0 then horizon.add(now + delay) end
  if delay > 0 and gid == '' then
    finish.delay(id, rec, now + delay)
  else
    finish.put_back(id, rec)
    if delay > 0 then group.rest(group.get(gid), now + delay) end
  end
end

-- The lease of a job that was taken ahead, and that nobody knows to have started, is over: as if it had never been.
function finish.unstarted(id, l, rec)
  local cancelled = cancels.has(id)
  finish.end_run(id, l)
  if cancelled then
    finish.failed(id, l.gid, lease.state_untold(l), cancels.REASON, '')
  else
    finish.put_back(id, rec)
  end
end

-- The lease expired: its holder died, hangs or is cut off. That used an attempt; the place is kept.
function finish.stalled(id, l, rec, policy)
  local cancelled = cancels.has(id)
  finish.end_run(id, l)
  W.count('stalled', 1)
  local s = lease.state_after(l)
  s[STALLS] = l.stalls + 1
  local max = record.max_of(rec)
  if max == 0 then max = policy.max_attempts end
  local reason = 'stalled: the lease of worker ' .. lease.worker(l) .. ' expired'
  local why
  if cancelled then
    why = cancels.REASON
  elseif s[ATTEMPTS] >= max then
    why = reason .. ' during the last attempt'
  elseif policy.max_stalled >= 0 and s[STALLS] > policy.max_stalled then
    why = reason .. ', more than ' .. policy.max_stalled .. ' times'
  end
  events.note('stalled', id, l.gid, s[ATTEMPTS], why ~= nil)
  if why then
    finish.failed(id, l.gid, s, why, '')
    return true
  end
  s[REASON] = reason
  state.save(id, s)
  log_failure(id, s, false)
  finish.put_back(id, rec)
  return false
end
