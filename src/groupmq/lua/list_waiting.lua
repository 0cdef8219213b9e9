--[[
A page of waiting jobs, going through the groups. Groups that find no room in the page are named instead: `list_group`
goes through them. Inside a page, by arrival.

Arguments  cursor ('0' = start), limit
Reply      {next cursor ('0' = end), at most `limit` ids, names of groups that are not in it}
]]
--- @include "lib/meta"
--- @include "lib/record"
local scan = redis.call('HSCAN', K.groups, A.cursor, 'COUNT', 20)
local members, deep = {}, {}
for i = 1, #scan[2], 2 do
  local gid = scan[2][i]
  local key = K.group .. gid
  if redis.call('ZCARD', key) > A.limit - #members then
    deep[#deep + 1] = gid
  else
    local of_group = redis.call('ZRANGE', key, 0, -1)
    for j = 1, #of_group do members[#members + 1] = of_group[j] end
  end
end
table.sort(members, function(a, b) return record.seq_of(a) < record.seq_of(b) end)
local ids = {}
for i = 1, #members do ids[i] = record.id_of(members[i]) end
return { scan[1], ids, deep }
