--[[
Read a page of the groups that are blocked (lib/blocking.lua), or of those whose breaker is open
(lib/breaker_changes.lua), longest first. Without the rule `breaker`, no breaker is open.

Arguments
  index       'blocked' or 'opened'
  offset      rank of the first group
  limit       how many groups, at most
Reply      {now, such groups in all, flat: group, since when (ms) ...}
Events     none
Cost       O(log(such groups) + limit): 3 commands
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/meta"
--- @reads
if A.index == 'opened' and not rules.breaker then return { now, 0, {} } end
local key, found = K[A.index], {}
if A.limit > 0 then found = redis.call('ZRANGE', key, A.offset, A.offset + A.limit - 1, 'WITHSCORES') end
for i = 2, #found, 2 do found[i] = tonumber(found[i]) end
return { now, redis.call('ZCARD', key), found }
