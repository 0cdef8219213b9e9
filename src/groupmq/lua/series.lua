--[[
What happened in each of the last minutes (lib/measure.lua).

Arguments  minutes (how many, this one included)
Reply      {this minute, values, oldest first, false where nothing happened}
]]
--- @include "lib/meta"
local minute, fields = math.floor(now / 60000), {}
for i = A.minutes - 1, 0, -1 do fields[#fields + 1] = W.whole(minute - i) end
local values = {}
for from = 1, #fields, 4000 do
  local page = redis.call('HMGET', K.series, unpack(fields, from, math.min(from + 3999, #fields)))
  for i = 1, #page do values[#values + 1] = page[i] end
end
return { minute, values }
