--[[
Forget finished jobs that ended at least `age` ago, oldest first.

Arguments
  kind        'completed' or 'failed'
  age         ms
  limit       how many jobs, at most
Reply      how many jobs were forgotten
Events     none
Cost       O(limit) fields in some ten commands
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/whole"
--- @include "lib/seen"
--- @include "lib/meta"
--- @include "lib/writes"
--- @include "lib/retention"
--- @writes allow-oom remembers
-- Stamps may run ahead of the clock (lib/meta.lua). With `now_us` alone, age = 0 would miss jobs that just finished.
local latest = whole(math.max(now_us, meta.stamp) - A.age * 1000)
local old = redis.call('ZRANGE', K[A.kind], '-inf', latest, 'BYSCORE', 'LIMIT', 0, A.limit)
seen.add(K[A.kind])
for i = 1, #old do
  W.zrem(K[A.kind], old[i])
  retention.forget(old[i])
end
return commit(#old)
