--[[
Delete the queue itself, whatever is in it, in bounded steps: some groups a call, the rest at the end.

Reply      how many groups are left; 0 = nothing of the queue is left
]]
--- @include "lib/keys"
local some = redis.call('HSCAN', K.groups, '0', 'COUNT', 500)[2]
local gids, keys = {}, {}
for i = 1, #some, 2 do
  gids[#gids + 1], keys[#keys + 1] = some[i], K.group .. some[i]
end
if #gids > 0 then
  redis.call('UNLINK', unpack(keys))
  redis.call('HDEL', K.groups, unpack(gids))
end
local left = redis.call('HLEN', K.groups)
if left == 0 then
  for name, key in pairs(K) do
    if name ~= 'group' then redis.call('UNLINK', key) end
  end
end
return left
