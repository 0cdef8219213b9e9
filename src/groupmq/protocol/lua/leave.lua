--[[
Workers leave: their presence, wake-up markers and last replies are deleted. Leases that they still hold expire at their
deadline. Another worker is woken, because a wake-up may have been on its way to a worker that leaves.

Arguments
  workers     ids of the workers
  requesters  names of their requesters
  received    fence of the last grant that the worker has received (lib/offer.lua); absent = not known
Reply      1
Events     none
Cost       O(workers + requesters) fields in some ten commands
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/writes"
--- @include "lib/wake"
--- @include "lib/reserve"
--- @include "transitions/grant"
--- @writes allow-oom
for i = 1, #A.workers do
  W.hdel(K.workers, A.workers[i])
  W.zrem(K.reservers, A.workers[i])
  reserve.works(A.workers[i])
  withdraw_offer(A.workers[i], A.received)
  W.unlink(K.mail .. A.workers[i])
  W.unlink(K.grants .. A.workers[i])
end
for i = 1, #A.requesters do W.hdel(K.requesters, A.requesters[i]) end
wake.up()
return commit(1)
