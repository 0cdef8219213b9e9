--[[ Put a job among the waiting jobs of its group, with the sort key in its record. ]]
--- @include "lib/record"
--- @include "lib/group"
--- @include "lib/members"

local function put_back(id, rec)
  record.remember(id, rec)
  members.put(group.get(record.group_of(rec)), record.member(id, rec))
end
