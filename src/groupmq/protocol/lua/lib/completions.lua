--[[
The completed jobs that a worker reports, the common outcome (lib/outcome.lua has all others), in columns: ids, fences,
bytes of the result in `blob` or -1 (false = no job has one).
]]
--- @include "lib/group"
--- @include "lib/lease"
--- @include "lib/lease_changes"
--- @include "lib/measure"
--- @include "lib/stopping"
--- @include "transitions/complete"
local completions = {}
--- @private

-- Complete the jobs whose lease has this fence. Returns the indexes of the refused ones.
function completions.apply(completed, blob, keep, worker)
  local ids, leases, refused = lease_changes.redeem(completed[1], completed[2])
  local results = completed[3] and cut_results(blob, completed[3])
  if refused[1] then
    measure.count('lease_lost', #refused)
    for i = 1, #refused do stopping.finish(completed[2][refused[i]]) end
    results = results and lease.without(results, refused)
  end
  if ids[1] then
    group.load(leases.gids)
    complete_jobs(ids, leases, results, keep, worker)
    measure.count('completed', #ids)
  end
  return refused
end
