--[[
Whose turn it is in an exclusive queue.

Reply      {worker, epoch, ms until its lease ends, jobs taken in this turn}, or {} if nobody has it
]]
--- @include "lib/turn"
local t = turn.current()
return t and { t[1], t[2], t[3] - now, t[4] } or {}
