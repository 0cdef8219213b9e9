--[[
Read the answer of a call that took effect (lib/answered.lua), for a client whose second request was refused because the
server is out of memory: a call that adds something is refused before it begins, even if it was executed before.

Arguments
  slot        of the call
  number      of the call in its slot
Reply      {the answer}, {} if none is kept
Events     none
Cost       O(1): 2 commands
]]
--- @include "lib/args"
--- @include "lib/answered"
--- @reads
local found = answered.find(A.slot, A.number)
return found == nil and {} or { found }
