--[[
Read a page of waiting jobs, going through the groups. A group with more waiting jobs than the page has room for is
only named, and the client reads it with `list_group`. Inside a page, jobs are sorted by arrival.

Arguments
  cursor      '0' = start
  limit       how many jobs, at most
Reply      {next cursor ('0' = end), at most `limit` job ids, ids of the groups that are not in the page}
Events     none
Cost       O(limit * log(limit)): some 20 groups, at most 5 commands and two for each group
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/record"
--- @include "lib/group"
--- @include "lib/waiting"
--- @reads
local scan = redis.call('HSCAN', K.groups, A.cursor, 'COUNT', 20)
local gids, members, deep = {}, {}, {}
for i = 1, #scan[2], 2 do gids[#gids + 1] = scan[2][i] end
group.load(gids)
for i = 1, #gids do
  local g = group.get(gids[i])
  local n = waiting.count(g)
  if n > A.limit - #members then
    deep[#deep + 1] = g.id
  elseif n > 0 then
    local of_group = waiting.first(g, n)
    for j = 1, #of_group do members[#members + 1] = of_group[j] end
  end
end
table.sort(members, function(a, b) return record.seq_of(a) < record.seq_of(b) end)
local ids = {}
for i = 1, #members do ids[i] = record.id_of(members[i]) end
return { scan[1], ids, deep }
