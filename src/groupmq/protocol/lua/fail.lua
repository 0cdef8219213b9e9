--[[
Fail a job for good on behalf of an operator. The handler of a running job is stopped (lib/stopping.lua).

Arguments
  id          job id
  reason      text
  keep        {completed, failed}: how many finished jobs to keep
Reply      {the state the job was found in ('' = no such job),
            1 = failed, 0 = already finished or no such job, 2 = it may not have begun: ask again,
            its group, if the job blocks it now and workers hold other jobs of it ('' = not): those that
            have not begun have to be recalled, or they would run although the group is blocked}
Events     failed, blocked, drained
Cost       O(1): some 20 commands
]]
--- @include "lib/args"
--- @include "lib/state"
--- @include "lib/record"
--- @include "lib/lease"
--- @include "lib/group"
--- @include "lib/find"
--- @include "transitions/remove"
--- @include "lib/recall"
--- @include "lib/retention"
--- @include "transitions/fail"
--- @writes allow-oom remembers
local job = find.jobs({ A.id })[1]
if not job.state or job.state == 'completed' or job.state == 'failed' then return { job.state or '', 0, '' } end
local found, status, out = job.state, 2, ''
if not recall.pending(job) then
  local s = job.lease and lease.state_after(job.lease) or state.load({ job.id })[1] or state.fresh()
  detach_job(job)
  fail_job(job.id, job.rec, s, { reason = A.reason })
  retention.apply(A.keep)
  found, status = job.state, 1
  local g = group.get(record.group_of(job.rec))
  if g.blocked and g.running > 0 then out = g.id end
end
return commit({ found, status, out })
