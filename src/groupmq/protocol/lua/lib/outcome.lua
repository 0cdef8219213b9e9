--[[
The outcomes that a worker reports for its runs. An outcome counts only under the fence of the job's current lease: with
any other fence it changes nothing, and the reply says so. A refused outcome does not affect the others. Completed jobs
are reported apart (lib/completions.lua).
]]
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/meta"
--- @include "lib/group"
--- @include "lib/state"
--- @include "lib/lease"
--- @include "lib/retention"
--- @include "lib/history"
--- @include "lib/end_run"
--- @include "lib/stopping"
--- @include "lib/interrupts"
--- @include "lib/measure"
--- @include "lib/breaker_changes"
--- @include "transitions/begin"
--- @include "transitions/fail"
--- @include "transitions/release"
--- @include "transitions/retry"
--- @include "transitions/snooze"
local outcome = {}
--- @private
-- The kinds of outcomes other than completed, each with its fields, which follow KIND, ID and FENCE.
local RETRY = 1 -- the attempt failed, another one follows: RETRIED
local FAIL = 2 -- the job has failed for good: FAILURE
local RELEASE = 3 -- given back, no attempt is used: RELEASED
local LIMITED = 4 -- the handler raised RateLimited: RESTED
local BEGIN = 5 -- a job that the worker holds has begun
local ABANDON = 6 -- a FAIL whose handler has not ended yet: FAILURE
local ENDED = 7 -- the handler of an abandoned run, or of a run whose job an operator had ended, has ended
local SNOOZE = 8 -- the handler raised Snooze, the job runs later, no attempt is used: SNOOZED
local KIND, ID, FENCE = 1, 2, 3
local FAILURE = {
  REASON = 4, -- text
  STACK = 5, -- text
  ERROR = 6, -- class of the exception, with its path; absent = none
}
local RETRIED = {
  DELAY = 4, -- ms until the next attempt
  YIELD = 5, -- true: the group goes on meanwhile
  REASON = 6, -- as in FAILURE
  STACK = 7,
  ERROR = 8,
}
local RESTED = {
  DELAY = 4, -- ms for which the group rests
  REASON = 5, -- as in FAILURE; absent = none
  ERROR = 6,
}
local RELEASED = {
  BEGUN = 4, -- whether its handler was called
}
local SNOOZED = {
  DELAY = 4, -- ms until the job may start again
  YIELD = 5, -- as in RETRIED
  REASON = 6, -- as in RESTED
  ERROR = 7,
}

-- Apply the transition for a run that has ended without completing its job.
local function conclude(o, id, l, rec)
  -- If this call has reported the job as begun, that has answered the recall.
  local kind, cancelled, asked = o[KIND], interrupts.cancels(id), not l.begun and interrupts.recalls(id)
  if kind == ABANDON then stopping.add(id, l) else end_run(id, l) end
  local s = lease.state_after(l)
  if kind == FAIL or kind == RETRY or kind == ABANDON then
    measure.run(now - l.started)
    if not cancelled then breaker_changes.failed(group.get(l.gid)) end
  end
  if kind ~= RELEASE or o[RELEASED.BEGUN] then announce_begin(id, l) end
  if not rec then
    retention.lose(id) -- its record was deleted from outside: nothing of the job may stay
  elseif kind == FAIL or kind == ABANDON then
    fail_job(id, rec, s, {
      reason = o[FAILURE.REASON], stack = o[FAILURE.STACK], error = o[FAILURE.ERROR], cancelled = cancelled,
    })
  elseif cancelled then
    -- A cancelled job does not run again, whatever its outcome.
    fail_job(id, rec, s, { reason = interrupts.CANCELLED, cancelled = true })
  elseif kind == RETRY then
    retry_job(id, rec, s, {
      delay = o[RETRIED.DELAY], yield = o[RETRIED.YIELD], reason = o[RETRIED.REASON], stack = o[RETRIED.STACK],
      error = o[RETRIED.ERROR],
    })
  elseif kind == LIMITED then
    s[REASON], s[ERROR] = o[RESTED.REASON] or '', o[RESTED.ERROR] or ''
    history.add(id, s, 'rate_limited', l.attempts == 0)
    release_rate_limited(id, rec, o[RESTED.DELAY])
  elseif kind == SNOOZE then
    s[REASON], s[ERROR] = o[SNOOZED.REASON] or '', o[SNOOZED.ERROR] or ''
    history.add(id, s, 'snoozed', l.attempts == 0)
    snooze_job(id, rec, o[SNOOZED.DELAY], o[SNOOZED.YIELD])
  elseif o[RELEASED.BEGUN] then
    history.add(id, s, 'released', l.attempts == 0)
    release_job(id, rec)
  elseif asked and not (meta.paused or group.get(l.gid).paused) then
    release_asked(id, rec)
  else
    release_job(id, rec)
  end
end

-- Release jobs (id, fence) that their worker has not begun, as if it had given them back.
function outcome.release(jobs)
  local outcomes = {}
  for i = 1, #jobs do outcomes[i] = { RELEASE, jobs[i][1], jobs[i][2], false } end
  outcome.apply(outcomes, {}, 0)
end

-- Apply all outcomes other than completed. Appends the indexes of the refused ones, counted from `before`.
function outcome.apply(outcomes, refused, before)
  local ids, gids = {}, {}
  for i = 1, #outcomes do ids[i] = outcomes[i][ID] end
  if #ids == 0 then return end
  local leases = lease.load(ids)
  for i = 1, #ids do
    if leases[i] then gids[#gids + 1] = leases[i].gid end
  end
  group.load(gids)
  local recs = redis.call('HMGET', K.jobs, unpack(ids))
  for i = 1, #ids do
    local o, id = outcomes[i], ids[i]
    local l = leases[i] and lease.current(id, leases[i])
    if o[KIND] == ENDED then
      stopping.finish(o[FENCE])
    elseif not (l and l.fence == o[FENCE]) then
      refused[#refused + 1] = before + i
      -- The call that ends a run may overtake the call that reports its begin; no lease was lost then.
      if o[KIND] ~= BEGIN then
        measure.count('lease_lost', 1)
        stopping.finish(o[FENCE])
      end
    elseif o[KIND] ~= BEGIN then
      conclude(o, id, l, recs[i])
    elseif not l.begun then
      begin_job(id, l)
    end
  end
end
