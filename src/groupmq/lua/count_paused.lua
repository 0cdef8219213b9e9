--[[
How many groups are paused, a page of the groups that have settings of their own at a time.

Arguments  cursor ('0' = start)
Reply      {next cursor ('0' = end), how many of this page}
]]
--- @include "lib/meta"
local scan, n = redis.call('HSCAN', K.conf, A.cursor, 'COUNT', 1000), 0
for i = 2, #scan[2], 2 do
  if cmsgpack.unpack(scan[2][i]).paused then n = n + 1 end
end
return { scan[1], n }
