--[[
The marker idle workers block on. It is a hint: whoever pops it asks for work, and is answered from `ready` alone.
One member, so any number of wake-ups before somebody looks are one.

In an exclusive queue the worker whose turn it is has a marker of its own: waking another would be no use.
]]
--- @include "lib/writes"
--- @include "lib/turn"
local wake = {}
--- @private

function wake.up()
  local holder = turn.holder()
  W.zadd(holder and K.hail .. holder or K.wake, 0, '0')
end
