--[[
Change when a job may start: a delayed or waiting job gets a new due time, a job in its back-off a new hold.

Arguments
  id            job id
  delay         ms, 0 = now
  only_delayed  true = refuse a waiting job that is not held
Reply      {the state the job was found in ('' = no such job), 1 = changed, 0 = not,
            2 = it may not have begun: ask again}
Events     none
Cost       O(1): some 20 commands
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/whole"
--- @include "lib/record"
--- @include "lib/writes"
--- @include "lib/horizon"
--- @include "lib/group"
--- @include "lib/state"
--- @include "lib/find"
--- @include "transitions/remove"
--- @include "lib/recall"
--- @include "lib/wake"
--- @include "transitions/delay"
--- @include "transitions/promote"
--- @writes allow-oom remembers
-- A refusal commits too: recall.pending may have released a prefetched job whose lease was over.
local job = find.jobs({ A.id })[1]
if not job.state then return { '', 0 } end
if recall.pending(job) then return commit({ job.state, 2 }) end
local g = find.group(job)
local held = job.state == 'waiting' and g.holds and g.holds[job.id]
local waits_for_time = job.state == 'delayed' or (job.state == 'waiting' and (held or not A.only_delayed))
if not waits_for_time then return commit({ job.state, 0 }) end
local time = now + A.delay
-- A job that has run keeps its sort key: a retry must not move behind jobs that arrived after it.
local has_run = state.load({ job.id })[1]
if held then
  local snoozed = g.snoozed and g.snoozed[job.id]
  group.release(g, job.id)
  if A.delay > 0 then group.hold(g, job.id, time, snoozed) end
elseif job.state == 'delayed' or A.delay > 0 then
  local ends = record.has_ttl(job.rec) and redis.call('ZSCORE', K.expiring, job.id)
  local rec = has_run and job.rec or record.moved_to(job.rec, time)
  W.hset(K.jobs, job.id, rec)
  if A.delay > 0 then
    detach_job(job)
    delay_job(job.id, rec, time)
  else
    promote_job(job.id, rec, true)
  end
  -- The ttl counts from the time at which the job may start.
  if ends then
    ends = ends + time - (job.score or now)
    W.zadd(K.expiring, whole(ends), job.id)
    horizon.add(ends)
  end
end
wake.up() -- a sleeping worker may now have to wake up earlier
return commit({ job.state, 1 })
