--[[
Read a page of the ids of groups that have a live job: waiting, active or delayed.

Arguments
  cursor      '0' = start
Reply      {next cursor ('0' = end), group ids}
Events     none
Cost       about 500 groups, one command
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @reads
local scan = redis.call('HSCAN', K.groups, A.cursor, 'COUNT', 500)
local gids = {}
for i = 1, #scan[2], 2 do
  if scan[2][i] ~= '' then gids[#gids + 1] = scan[2][i] end
end
return { scan[1], gids }
