--[[
Delete entries of `elsewhere`, except those that were written again since they were read: their job is being added.

Arguments
  ids         job ids
  entries     the entry of each, as it was read
Reply      how many were deleted
Events     none
Cost       O(N): two commands for N entries
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @plain allow-oom
local stored, gone = redis.call('HMGET', K.elsewhere, unpack(A.ids)), {}
for i = 1, #A.ids do
  if stored[i] == A.entries[i] then gone[#gone + 1] = A.ids[i] end
end
if #gone > 0 then redis.call('HDEL', K.elsewhere, unpack(gone)) end
return #gone
