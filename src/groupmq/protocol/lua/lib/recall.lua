--[[
A job that a worker holds may not have begun (lib/lease.lua). No operation may change such a job before that is known:
its worker is asked for it (lib/interrupts.lua), and gives it back or answers that it has begun. If the worker is gone,
the end of the lease settles it: no worker starts a job whose lease is over. A prefetched one is released then.
]]
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/interrupts"
--- @include "transitions/release"
local recall = {}
--- @private

-- Whether the job cannot be changed yet. If so, its worker has been asked for it. `job`: as find.jobs returns it.
function recall.pending(job)
  local l = job.lease
  if not (l and job.rec) or l.begun then return false end
  local deadline = tonumber(redis.call('ZSCORE', K.active, job.id) or nil)
  if deadline and deadline > now then
    interrupts.recall(job.id, l)
    return true
  end
  if l.prefetched then
    release_unstarted(job.id, l, job.rec)
    job.lease, job.state = false, 'waiting'
  end
  return false
end
