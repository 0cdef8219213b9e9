--[[
The ends of a run and of a job. Each transition exists here once; scripts, stall recovery and operators share them.
A run ends in exactly one of: completed, failed, back to its place (retry with a hold, stall, hand-back), or delayed
(retry that yields). All of them free the group's slot through `finish.free`. Completed jobs are in lib/complete.lua.
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

-- `n` runs of the group are over.
function finish.free(g, n)
  g.running = math.max(0, g.running - n)
  group.touch(g)
end

function finish.end_run(id, l)
  lease.revoke(id)
  finish.free(group.get(l.gid), 1)
end

-- One line of the failure log; `s` already counts the attempt.
local function log_failure(id, s, final)
  local entry = { id, s[ATTEMPTS], s[REASON], s[STACK], now, final, s[WORKER] }
  W.push(K.failures, cmsgpack.pack(entry), FAILURES_KEPT)
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
