--[[
A page of the waiting jobs of one group, in their order.

Arguments  group, limit; bytes: where the last page ended, none = start
Reply      {ids, where this page ends, false if it is the last}
]]
--- @include "lib/meta"
--- @include "lib/record"
local after = ARGV[2] or ''
local from = after == '' and '+' or '(' .. after
local members = redis.call('ZRANGE', K.group .. A.group, from, '-', 'BYLEX', 'REV', 'LIMIT', 0, A.limit)
local ids = {}
for i = 1, #members do ids[i] = record.id_of(members[i]) end
return { ids, #members == A.limit and members[#members] }
