--[[
Read a page of the blocked groups (lib/blocking.lua), the one that has been blocked longest first.

Arguments
  offset      how many groups to leave out
  limit       how many groups, at most
Reply      {now, blocked groups in all, flat: group, since when it is blocked (ms) ...}
Events     none
Cost       O(log(blocked groups) + limit): 3 commands
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/clock"
--- @reads
local found = {}
if A.limit > 0 then found = redis.call('ZRANGE', K.blocked, A.offset, A.offset + A.limit - 1, 'WITHSCORES') end
for i = 2, #found, 2 do found[i] = tonumber(found[i]) end
return { now, redis.call('ZCARD', K.blocked), found }
