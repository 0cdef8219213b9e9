--[[
Count the paused groups, one page of the groups with settings of their own at a time.

Arguments
  cursor      '0' = start
Reply      {next cursor ('0' = end), how many groups of this page are paused}
Events     none
Cost       about 1,000 fields, one command
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @reads
local scan, n = redis.call('HSCAN', K.conf, A.cursor, 'COUNT', 1000), 0
for i = 2, #scan[2], 2 do
  if cmsgpack.unpack(scan[2][i]).paused then n = n + 1 end
end
return { scan[1], n }
