--[[
Forget finished jobs that ended at least `age` ago, oldest first.

Arguments  kind ('completed', 'failed'), age (ms), limit
Reply      how many were forgotten
]]
--- @include "lib/retention"
-- Measured on the clock that stamped them: what has just finished is old enough for an age of 0.
local latest = W.whole(math.max(now_us, meta.stamp) - A.age * 1000)
local old = redis.call('ZRANGE', K[A.kind], '-inf', latest, 'BYSCORE', 'LIMIT', 0, A.limit)
for i = 1, #old do
  W.zrem(K[A.kind], old[i])
  retention.forget(old[i])
end
W.commit()
return #old
