--[[
Read the definitions of repeating jobs.

Arguments  by default the repeats that are due
  ids         only these repeats
  all         true = a page of all repeats
  cursor      '0' = start; only with `all`
  limit       how many, at most; not with `ids`
  data        true = with the large data of the first of `ids` (lib/repeats.lua)
Reply      {now, flat: repeat id, definition ..., ms until the next later tick or -1, next cursor ('0' = end),
           with `data` and if the definition does not have it: the data}
Events     none
Cost       O(limit) or O(ids): at most 5 commands
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/whole"
--- @include "lib/bodies"
--- @reads
local found, cursor = {}, '0'
if A.all then
  local page = redis.call('HSCAN', K.repeats, A.cursor, 'COUNT', A.limit)
  cursor, found = page[1], page[2]
else
  local rids = A.ids or redis.call('ZRANGE', K.ticks, '-inf', whole(now), 'BYSCORE', 'LIMIT', 0, A.limit)
  local values = #rids > 0 and redis.call('HMGET', K.repeats, unpack(rids)) or {}
  for i = 1, #rids do
    if values[i] then
      found[#found + 1] = rids[i]
      found[#found + 1] = values[i]
    end
  end
end
local first = redis.call('ZRANGE', K.ticks, '(' .. whole(now), '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
local data = A.data and redis.call('HGET', K.bodies, bodies.of_repeat(A.ids[1])) or nil
return { now, found, first[2] and math.max(0, first[2] - now) or -1, cursor, data }
