--[[
Workers leave: their presence, mail and lanes go. Their leases, if any are left, expire by themselves. Somebody else is
woken: a hint may have been on its way to the one who leaves.

Arguments  workers, lanes
]]
--- @include "lib/meta"
--- @include "lib/wake"
for i = 1, #A.workers do
  W.hdel(K.workers, A.workers[i])
  W.unlink(K.mail .. A.workers[i])
end
for i = 1, #A.lanes do W.hdel(K.lanes, A.lanes[i]) end
wake.up()
W.commit()
return 1
