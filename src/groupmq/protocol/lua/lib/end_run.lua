--[[ End the lease and free the slot of a run. The transition that calls this decides what happens to the job. ]]
--- @include "lib/group"
--- @include "lib/lease_changes"

local function end_run(id, l)
  lease_changes.revoke(id)
  group.free(group.get(l.gid), 1)
end
