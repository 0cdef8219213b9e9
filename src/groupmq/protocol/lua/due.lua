--[[
Do everything that is due by now without taking a job: the same work as in advance, for schedulers that run alone.

Arguments
  promote     true = delayed jobs that are due join their groups
  unpark      true = parked groups that are due become ready; also deletes expired entries (lib/sweep.lua)
  expire      true = take back expired leases and fail jobs past their ttl
  policy      as in advance
Reply      {jobs promoted, groups unparked, stalled jobs, flat: id, group, what happens next (transitions/stall.lua),
            jobs that failed because their ttl has ended, flat: id, group, 1 if it blocks its group,
            ms until something is due or -1, jobs that were checked because their ttl has ended,
            1 if expired entries may be left}
Events     failed, stalled, blocked, drained
Cost       O(1): at most 60 delayed jobs, 60 groups, and 30 each of leases, stopping runs and jobs past their ttl
           (lib/budget.lua), about 3 commands for each, and 100 expired entries of each kind
]]
--- @include "lib/args"
--- @include "lib/horizon"
--- @include "lib/due"
--- @include "lib/retention"
--- @include "lib/sweep"
--- @writes allow-oom remembers
if A.expire and A.promote and A.unpark then horizon.look_at_all() end
local stalled = A.expire and due.expire(A.policy) or {}
if A.expire then due.stop() end
local expired, checked = { list = {}, n = 0 }, 0
if A.expire then expired, checked = due.overdue() end
local promoted = A.promote and due.promote(expired) or 0
local woken = A.unpark and due.unpark() or 0
retention.apply(A.policy.keep)
local more_expired = A.unpark and sweep.all() and 1 or 0
return commit({ promoted, woken, stalled, expired.list, 0, checked, more_expired }, 5)
