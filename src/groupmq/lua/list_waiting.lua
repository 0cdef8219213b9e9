--[[
A page of waiting jobs, going through the groups. Bounded: at most `limit` ids a call, then a cursor for the next.
Inside a page, by arrival.

Arguments  cursor ('0' = start), limit
Reply      {next cursor ('0' = end), ids}
]]
--- @include "lib/meta"
--- @include "lib/record"
local scan = redis.call('HSCAN', K.groups, A.cursor, 'COUNT', 20)
local members = {}
for i = 1, #scan[2], 2 do
  if #members >= A.limit then break end
  local of_group = redis.call('ZRANGE', K.group .. scan[2][i], 0, A.limit - #members - 1)
  for j = 1, #of_group do members[#members + 1] = of_group[j] end
end
table.sort(members, function(a, b) return record.seq_of(a) < record.seq_of(b) end)
local ids = {}
for i = 1, #members do ids[i] = record.id_of(members[i]) end
return { scan[1], ids }
