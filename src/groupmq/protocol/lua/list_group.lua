--[[
Read a page of the waiting jobs of one group, in the order in which they start.

Arguments
  group       group id, '' = jobs without a group
  limit       how many jobs, at most
Blob       where the last page ended; empty = start
Reply      {job ids, where this page ends, false if it is the last one}
Events     none
Cost       O(log(waiting jobs) + limit), at most 5 commands
]]
--- @include "lib/args"
--- @include "lib/record"
--- @include "lib/group"
--- @include "lib/waiting"
--- @reads
local from = blob == '' and waiting.START or waiting.after(blob)
local members = waiting.page(group.get(A.group), from, A.limit)
local ids = {}
for i = 1, #members do ids[i] = record.id_of(members[i]) end
return { ids, #members == A.limit and members[#members] }
