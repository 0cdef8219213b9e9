--[[
Delete the queue itself with everything in it, in bounded steps: some groups per call, all other keys at the end.

The groups are drawn at random, because that always finds some. A scan from the start would find none once its first
buckets are empty, and the server does not shrink the hash until most buckets are.

Arguments  none
Reply      how many groups and rate limits are left; 0 = nothing of the queue is left
Events     none; the event log is deleted too
Cost       PAGE groups, PAGE rate limits and all workers, in some 10 commands; the last call unlinks every key
]]
--- @include "lib/keys"
--- @include "lib/turn_value"
local PAGE = 200
--- @plain allow-oom
local doomed, gids = {}, redis.call('HRANDFIELD', K.groups, PAGE)
for i = 1, #gids do doomed[i] = K.group .. gids[i] end
local rated = redis.call('ZRANGE', K.rated, 0, PAGE - 1)
for i = 1, #rated do doomed[#doomed + 1] = K.rate .. rated[i] end
local turn = turn_value.read(redis.call('HGET', K.meta, 'turn'))
for _, worker in ipairs(redis.call('HKEYS', K.workers)) do
  for _, family in ipairs({ K.mail, K.grants, K.wake_of }) do
    doomed[#doomed + 1] = family .. worker
  end
end
if turn then doomed[#doomed + 1] = K.wake_of .. turn[1] end
if #doomed > 0 then redis.call('UNLINK', unpack(doomed)) end
if #gids > 0 then redis.call('HDEL', K.groups, unpack(gids)) end
if #rated > 0 then redis.call('ZREM', K.rated, unpack(rated)) end
local left = redis.call('HLEN', K.groups) + redis.call('ZCARD', K.rated)
if left == 0 then
  for _, key in pairs(K) do
    if string.sub(key, -1) ~= ':' then redis.call('UNLINK', key) end
  end
end
return left
