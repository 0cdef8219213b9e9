--[[
Stall: the lease of a run has expired, because its worker died, hangs or is cut off. That uses an attempt. The job keeps
its sort key, or fails for good after its last attempt or after `max_stalled` stalls.
]]
--- @include "lib/record"
--- @include "lib/group"
--- @include "lib/state"
--- @include "lib/state_changes"
--- @include "lib/lease"
--- @include "lib/events"
--- @include "lib/interrupts"
--- @include "lib/history"
--- @include "lib/measure"
--- @include "lib/breaker_changes"
--- @include "transitions/fail"
--- @include "lib/end_run"
--- @include "lib/put_back"

-- The codes in replies for what happens next to a job that has stalled.
local RUNS_AGAIN, FAILED, FAILED_AND_BLOCKS, CANCELLED = 0, 1, 2, 3

-- End the run of a job whose lease has expired. Returns one of these codes.
local function stall_job(id, l, rec, policy)
  local cancelled = interrupts.cancels(id)
  end_run(id, l)
  measure.count('stalled', 1)
  if not cancelled then breaker_changes.failed(group.get(l.gid)) end
  local s = lease.state_after(l)
  s[STALLS] = l.stalls + 1
  local max = record.max_of(rec)
  if max == 0 then max = policy.max_attempts end
  local reason = 'stalled: the lease of worker ' .. lease.worker(l) .. ' expired'
  local why
  if cancelled then
    why = interrupts.CANCELLED
  elseif s[ATTEMPTS] >= max then
    why = reason .. ' during the last attempt'
  elseif policy.max_stalled >= 0 and s[STALLS] > policy.max_stalled then
    why = reason .. ', more than ' .. policy.max_stalled .. ' times'
  end
  events.publish('stalled', id, l.gid, s[ATTEMPTS], why ~= nil)
  if why then
    local blocks = fail_job(id, rec, s, { reason = why, cancelled = cancelled })
    return cancelled and CANCELLED or blocks and FAILED_AND_BLOCKS or FAILED
  end
  s[REASON] = reason
  state_changes.save(id, s)
  history.add(id, s, 'stalled')
  log_failed_attempt(id, l.gid, s, false)
  put_back(id, rec)
  return RUNS_AGAIN
end
