--[[
The marker `wake`, which idle workers block on. It is only a hint: a worker that pops it asks for work, and the answer
depends on `ready` alone. It has one member, so any number of wake-ups before a worker pops it count as one.

In an exclusive queue the worker that has the turn has a marker of its own (`wake:`), because waking another worker
would be useless.
]]
--- @include "lib/call"
--- @include "lib/keys"
--- @include "lib/writes"
--- @include "lib/turn"
local wake = {}
--- @private

function wake.up() call.wake = true end

-- Runs at the end of the call, because the call may have ended the turn.
function wake.note()
  local worker = turn.worker()
  W.zadd(worker and K.wake_of .. worker or K.wake, 0, '0')
end
