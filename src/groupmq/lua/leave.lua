--[[
Workers leave: their presence and lanes go. Their leases, if any are left, expire by themselves.

Arguments  workers, lanes
]]
--- @include "lib/meta"
for i = 1, #A.workers do W.hdel(K.workers, A.workers[i]) end
for i = 1, #A.lanes do W.hdel(K.lanes, A.lanes[i]) end
W.commit()
return 1
