--[[ Promote: a delayed job joins its group by its sort key. The caller has removed it from `delayed`. ]]
--- @include "lib/record"
--- @include "lib/gate"
--- @include "lib/group"
--- @include "transitions/release"

local function promote_job(id, rec)
  gate.arrive(group.get(record.group_of(rec)))
  put_back(id, rec)
end
