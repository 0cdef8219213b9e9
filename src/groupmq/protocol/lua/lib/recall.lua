--[[
A prefetched job belongs to its worker, but may not have begun. No operation may change such a job before that is known:
its worker is asked for it (lib/interrupts.lua), and gives it back or answers that it has begun. If the worker is gone,
the end of the lease settles it: a prefetched job whose lease is over is released.
]]
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/interrupts"
--- @include "transitions/release"
local recall = {}
--- @private

-- True if the job cannot be changed yet; then its worker has been asked for it. `job`: as find.jobs returns it.
function recall.pending(job)
  local l = job.lease
  if not (l and l.ahead and job.rec) then return false end
  local deadline = tonumber(redis.call('ZSCORE', K.active, job.id) or nil)
  if deadline and deadline > now then
    interrupts.recall(job.id, l)
    return true
  end
  release_unstarted(job.id, l, job.rec)
  job.lease, job.state = false, 'waiting'
  return false
end
