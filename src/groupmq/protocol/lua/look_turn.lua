--[[
Read which worker has the turn of an exclusive queue.

Arguments  none
Reply      {worker, epoch, ms until its deadline, jobs taken in this turn}, {} if no worker has the turn
Events     none
Cost       O(1): no command
]]
--- @include "lib/clock"
--- @include "lib/meta"
--- @reads
local t = rules.exclusive and meta.turn
return t and { t[1], t[2], t[3] - now, t[4] } or {}
