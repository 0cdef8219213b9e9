--[[
A page of the ids of groups that have a live job (waiting, active or delayed).

Arguments  cursor ('0' = start)
Reply      {next cursor ('0' = end), ids}
]]
--- @include "lib/meta"
local scan = redis.call('HSCAN', K.groups, A.cursor, 'COUNT', 500)
local gids = {}
for i = 1, #scan[2], 2 do
  if scan[2][i] ~= '' then gids[#gids + 1] = scan[2][i] end
end
return { scan[1], gids }
