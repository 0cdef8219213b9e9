--[[ Fail: an attempt has failed, or a job has failed for good. ]]
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/writes"
--- @include "lib/state"
--- @include "lib/state_changes"
--- @include "lib/retention"
--- @include "lib/events"
--- @include "lib/measure"

-- Append an attempt to `failures`; `s` already counts it. `final`: it was the last attempt.
local function log_failed_attempt(id, gid, s, final)
  local entry = { id, s[ATTEMPTS], s[REASON], s[STACK], now, final, s[WORKER], s[ERROR] or '', gid }
  W.push(K.failures, cmsgpack.pack(entry), FAILURES_KEPT)
end

-- Job `id` of group `gid` has failed for good and has no lease. `error`: class of the exception of its handler.
local function fail_job(id, gid, s, reason, stack, error)
  s[FINISHED], s[REASON], s[STACK], s[ERROR] = now, reason, stack, error or ''
  state_changes.save(id, s)
  log_failed_attempt(id, gid, s, true)
  retention.finished('failed', id)
  measure.count('failed', 1)
  events.note('failed', id, gid, s[ATTEMPTS], reason, stack)
end
