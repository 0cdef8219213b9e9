--[[
Read the numbers of each of the last minutes (lib/minutes.lua).

Arguments
  minutes     how many minutes
  last        the last of them, epoch ms / 60000; absent = the current one
Reply      {the last minute, values, oldest first, false where nothing happened,
            measures as stored (lib/measure_value.lua) or false: the latest minute in which anything happened}
Events     none
Cost       O(minutes), one command for 4,000 of them
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/whole"
--- @include "lib/meta"
--- @reads
local minute, fields = A.last or math.floor(now / 60000), {}
for i = A.minutes - 1, 0, -1 do fields[#fields + 1] = whole(minute - i) end
local values = {}
for from = 1, #fields, 4000 do
  local page = redis.call('HMGET', K.series, unpack(fields, from, math.min(from + 3999, #fields)))
  for i = 1, #page do values[#values + 1] = page[i] end
end
return { minute, values, meta.measures }
