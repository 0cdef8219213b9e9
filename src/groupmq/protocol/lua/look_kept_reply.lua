--[[
Read the kept reply to a call that took effect (lib/kept_replies.lua), for a client whose second request was refused
because the server is out of memory: a call that adds something is refused before it begins, even if it was executed
before.

Arguments
  requester   of the call
  number      of the call among those of its requester
Reply      {the reply}, {} if none is kept
Events     none
Cost       O(1): 2 commands
]]
--- @include "lib/args"
--- @include "lib/kept_replies"
--- @reads
local found = kept_replies.find(A.requester, A.number)
return found == nil and {} or { found }
