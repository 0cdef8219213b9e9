--[[
Forget finished jobs that ended at least `age` ago, oldest first. A job that blocks its group (lib/blocking.lua) stays.

Arguments
  kind        'completed' or 'failed'
  age         ms
  limit       how many jobs, at most
Reply      how many jobs were forgotten
Events     none
Cost       O(limit) fields in some ten commands
]]
--- @include "lib/args"
--- @include "lib/clock"
--- @include "lib/whole"
--- @include "lib/meta"
--- @include "lib/retention"
--- @writes allow-oom remembers
-- Stamps may run ahead of the clock (lib/meta.lua). With `now_us` alone, age = 0 would miss jobs that just finished.
local latest = whole(math.max(now_us, meta.stamp) - A.age * 1000)
local old = retention.oldest(A.kind, A.limit, latest)
retention.drop(A.kind, old)
return commit(#old)
