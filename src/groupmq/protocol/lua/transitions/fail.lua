--[[
Fail: an attempt has failed, or a job has failed for good. With `on_failed="hold"` a job that failed for good blocks its
group, whatever the reason, unless a person has cancelled it. Jobs without a group block nothing.
]]
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/meta"
--- @include "lib/record"
--- @include "lib/writes"
--- @include "lib/group"
--- @include "lib/state"
--- @include "lib/state_changes"
--- @include "lib/retention"
--- @include "lib/events"
--- @include "lib/measure"
--- @include "lib/blocking_changes"
--- @include "lib/unique"

-- Append an attempt to `failures`; `s` already counts it. `final`: it was the last attempt.
local function log_failed_attempt(id, gid, s, final)
  local entry = { id, s[ATTEMPTS], s[REASON], s[STACK], now, final, s[WORKER], s[ERROR] or '', gid }
  W.push(K.failures, cmsgpack.pack(entry), FAILURES_KEPT)
end

-- Fail job `id` for good. It must have no lease. `why`: reason, stack (default ''), error (class of the exception of
-- its handler, default ''), cancelled (by a person). Returns whether it blocks its group.
local function fail_job(id, rec, s, why)
  local gid, stack = record.group_of(rec), why.stack or ''
  s[FINISHED], s[REASON], s[STACK], s[ERROR] = now, why.reason, stack, why.error or ''
  state_changes.save(id, s)
  log_failed_attempt(id, gid, s, true)
  retention.finished('failed', id)
  measure.count('failed', 1)
  events.publish('failed', id, gid, s[ATTEMPTS], why.reason, stack)
  if meta.uniques then unique.ended({ id }) end
  local blocks = gid ~= '' and not why.cancelled and record.holds(rec)
  if blocks then blocking_changes.add(group.get(gid), id) end
  return blocks
end
