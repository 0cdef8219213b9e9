--[[
Remove the definition of a repeating job. The stored value must still be the one that the client has read, as in
define.lua. It is a separate function because it must also work when the server is out of memory.

Arguments
  id          id of the repeat
Blob       the stored value as the client read it
Reply      1 = removed, 0 = another process has changed it: read again
Events     none
Cost       O(1): some 10 commands
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/repeats"
--- @writes allow-oom remembers
if (redis.call('HGET', K.repeats, A.id) or '') ~= blob then return 0 end
repeats.remove(A.id)
repeats.set_first_tick()
return commit(1)
