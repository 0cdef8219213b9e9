--[[
Forget finished jobs that ended at least `age` ago, oldest first.

Arguments  kind ('completed', 'failed'), age (ms), limit
Reply      how many were forgotten
]]
--- @include "lib/retention"
local old = redis.call('ZRANGE', K[A.kind], '-inf', (now - A.age) * 1000, 'BYSCORE', 'LIMIT', 0, A.limit)
for i = 1, #old do
  W.zrem(K[A.kind], old[i])
  retention.forget(old[i])
end
W.commit()
return #old
