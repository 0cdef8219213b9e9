--[[
Delete the queue itself, whatever is in it, in bounded steps: some groups a call, the rest at the end.

Reply      how many groups and rate limits are left; 0 = nothing of the queue is left
]]
--- @include "lib/keys"
local PAGE = 500
local doomed, gids = {}, {}
local some = redis.call('HSCAN', K.groups, '0', 'COUNT', PAGE)[2]
for i = 1, #some, 2 do
  gids[#gids + 1], doomed[#doomed + 1] = some[i], K.group .. some[i]
end
local rated = redis.call('ZRANGE', K.rated, 0, PAGE - 1)
for i = 1, #rated do doomed[#doomed + 1] = K.rate .. rated[i] end
local raw = redis.call('HGET', K.meta, 'turn')
for _, worker in ipairs(redis.call('HKEYS', K.workers)) do doomed[#doomed + 1] = K.mail .. worker end
if raw then doomed[#doomed + 1] = K.hail .. cmsgpack.unpack(raw)[1] end
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
