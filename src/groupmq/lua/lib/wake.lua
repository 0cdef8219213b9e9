--[[
The marker idle workers block on. It is a hint: whoever pops it asks for work, and is answered from `ready` alone.
One member, so any number of wake-ups before somebody looks are one.

In an exclusive queue the worker whose turn it is has a marker of its own: waking another would be no use.
]]
--- @include "lib/writes"
--- @include "lib/turn"
local wake = {}
--- @private

local wanted = false

function wake.up() wanted = true end

-- At the commit: only then is it sure whether the turn of this call's start is still one.
W.before_commit[#W.before_commit + 1] = function()
  if not wanted then return end
  local holder = turn.holder()
  local marker = holder and K.hail .. holder or K.wake
  redis.call('ZCARD', marker) -- of a wrong type, it must stop the call before it writes
  W.zadd(marker, 0, '0')
end
