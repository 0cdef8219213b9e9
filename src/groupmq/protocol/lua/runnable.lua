--[[
Read whether a waiting job may start now, whichever worker has the turn of an exclusive queue.

Arguments  none
Reply      1 or 0
Events     none
Cost       O(1): one command
]]
--- @include "lib/keys"
--- @include "lib/meta"
--- @include "lib/rate"
--- @reads
if meta.paused or rate.is_limited() then return 0 end
return redis.call('ZCARD', K.ready) > 0 and 1 or 0
