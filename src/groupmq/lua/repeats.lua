--[[
Look at repeating jobs.

Arguments  ids (absent = those due, at most `limit`; with `all`, a page of all of them from `cursor`)
Reply      {now, values flat (repeat id, definition), ms until the next tick after these or -1, next cursor ('0' = end)}
]]
--- @include "lib/meta"
local found, cursor = {}, '0'
if A.all then
  local page = redis.call('HSCAN', K.repeats, A.cursor, 'COUNT', A.limit)
  cursor, found = page[1], page[2]
else
  local rids = A.ids or redis.call('ZRANGE', K.ticks, '-inf', W.whole(now), 'BYSCORE', 'LIMIT', 0, A.limit)
  local values = #rids > 0 and redis.call('HMGET', K.repeats, unpack(rids)) or {}
  for i = 1, #rids do
    if values[i] then
      found[#found + 1] = rids[i]
      found[#found + 1] = values[i]
    end
  end
end
local first = redis.call('ZRANGE', K.ticks, '(' .. W.whole(now), '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
return { now, found, first[2] and math.max(0, first[2] - now) or -1, cursor }
