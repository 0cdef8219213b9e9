--[[
Retry: an attempt has failed, and another one follows after a back-off. The job keeps its sort key. With
`on_retry="hold"` its group waits for it; with "yield" the job is delayed, and its group continues meanwhile. A job
without a group has no group to hold, so it always yields.
]]
--- @include "lib/clock"
--- @include "lib/record"
--- @include "lib/group"
--- @include "lib/state"
--- @include "lib/state_changes"
--- @include "lib/events"
--- @include "lib/history"
--- @include "lib/measure"
--- @include "transitions/fail"
--- @include "transitions/delay"
--- @include "lib/put_back"

-- `how`: delay (ms), yield, reason, stack, error.
local function retry_job(id, rec, s, how)
  local gid = record.group_of(rec)
  s[REASON], s[STACK], s[ERROR] = how.reason, how.stack, how.error or ''
  state_changes.save(id, s)
  history.add(id, s, 'retried')
  log_failed_attempt(id, gid, s, false)
  measure.count('retried', 1)
  events.publish('retrying', id, gid, s[ATTEMPTS], how.delay, how.reason)
  if how.delay > 0 and (how.yield or gid == '') then
    delay_job(id, rec, now + how.delay)
  else
    put_back(id, rec)
    if how.delay > 0 then group.hold(group.get(gid), id, now + how.delay) end
  end
end
