--[[
Take back leases of a worker whose process has ended, without waiting until they expire. They end as if they had
expired: a run uses an attempt, and a prefetched job that is not known to have begun is released. A lease counts only
under its fence, and only if it is that worker's. The runs of the worker whose jobs an operator has ended free their
slots too.

Arguments
  worker      id of the worker
  runs        its leases, flat: id, fence ...
  policy      as in advance
Reply      stalled jobs, flat: id, group, what happens next (transitions/stall.lua)
Events     failed, stalled, blocked, drained
Cost       O(runs): about 3 commands for each
]]
--- @include "lib/args"
--- @include "lib/lease"
--- @include "lib/due"
--- @include "lib/stopping"
--- @include "lib/retention"
--- @include "transitions/grant"
--- @writes allow-oom remembers
take_back_granted(A.worker)
local ids, mine = {}, {}
for i = 1, #A.runs, 2 do ids[#ids + 1] = A.runs[i] end
local leases = lease.load(ids)
for i = 1, #ids do
  local l = leases[i]
  if l and l.fence == A.runs[2 * i] and lease.worker(l) == A.worker then mine[#mine + 1] = ids[i] end
end
local stalled = due.take_back(mine, A.policy)
for _, fence in ipairs(stopping.of(A.worker)) do stopping.finish(fence) end
retention.apply(A.policy.keep)
return commit(stalled)
