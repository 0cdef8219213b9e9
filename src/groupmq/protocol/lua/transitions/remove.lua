--[[ Remove: delete a job and everything that is stored for it. ]]
--- @include "lib/keys"
--- @include "lib/meta"
--- @include "lib/record"
--- @include "lib/writes"
--- @include "lib/members"
--- @include "lib/find"
--- @include "lib/stopping"
--- @include "lib/retention"
--- @include "lib/events"
--- @include "lib/blocking_changes"
--- @include "lib/unique"
--- @include "transitions/delay"

-- Remove the job from the structure of its state, and keep its record. The end of the call refreshes its group. The run
-- of an active job keeps its slot until its handler has ended.
local function detach_job(job)
  if meta.ttls then W.zrem(K.expiring, job.id) end
  if job.state == 'active' then
    stopping.add(job.id, job.lease)
  elseif job.state == 'waiting' then
    members.drop(find.group(job), record.member(job.id, job.rec))
  elseif job.state == 'delayed' then
    undelay_job(job.id, job.rec)
  else
    W.zrem(K[job.state], job.id)
    if job.state == 'failed' then blocking_changes.resolve(job.id) end
  end
end

local function remove_job(job)
  detach_job(job)
  retention.forget(job.id)
  if meta.uniques then unique.free(job.id) end
  events.publish('removed', job.id, record.group_of(job.rec))
end
