--[[
The marker idle workers block on. It is a hint: whoever pops it asks for work, and is answered from `ready` alone.
One member, so any number of wake-ups before somebody looks are one.
]]
--- @include "lib/writes"
local wake = {}
--- @private

function wake.up() W.zadd(K.wake, 0, '0') end
