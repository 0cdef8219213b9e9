--[[
Put a mark, such as a deployment, into the history of the queue. The newest MOST marks are kept. The same label at the
same time is the same mark.

Arguments
  label       text
  at          epoch ms; absent = now
Reply      the time of the mark, epoch ms
Events     none
Cost       O(1): at most 5 commands
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/whole"
--- @include "lib/seen"
--- @include "lib/writes"
local MOST = 100
--- @writes remembers
local at = A.at or now
local member = whole(at) .. ' ' .. A.label
seen.add(K.labels)
local over = redis.call('ZCARD', K.labels) + 1 - MOST
local old = over > 0 and redis.call('ZRANGE', K.labels, 0, over - 1, 'WITHSCORES') or {}
local older_than_all = old[2] and at < tonumber(old[2])
if not older_than_all and not redis.call('ZSCORE', K.labels, member) then
  for i = 1, #old, 2 do W.zrem(K.labels, old[i]) end
  W.zadd(K.labels, whole(at), member)
end
return commit(at)
