--[[
Change when a job may start: a delayed or waiting job gets a new due time, a waiting job in its back-off a new hold.

Arguments  id, delay (ms; 0 = now), only_delayed (true: refuse a job that does not wait for its time)
Reply      the state the job was found in, '' if there is none, and 1 if it was changed
]]
--- @include "lib/find"
--- @include "lib/settle"
--- @include "lib/wake"
local job = find.jobs({ A.id })[1]
if not job.state then return { '', 0 } end
local g = find.group(job)
local held = job.state == 'waiting' and g.holds and g.holds[job.id]
if job.state ~= 'delayed' and (job.state ~= 'waiting' or (A.only_delayed and not held)) then
  return { job.state, 0 }
end
local time = now + A.delay
-- A job that has run keeps its place: a retry must not move behind jobs that came after it.
local has_run = state.load({ job.id })[1]
if held then
  group.release(g, job.id)
  if A.delay > 0 then group.hold(g, job.id, time) end
elseif job.state == 'delayed' or A.delay > 0 then
  local ends = record.has_ttl(job.rec) and redis.call('ZSCORE', K.expiring, job.id)
  find.detach(job)
  -- Its ttl counts from when it may start.
  if ends then W.zadd(K.expiring, W.whole(ends + time - (job.score or now)), job.id) end
  local rec = has_run and job.rec or record.moved_to(job.rec, time)
  W.hset(K.jobs, job.id, rec)
  if A.delay > 0 then
    finish.delay(job.id, rec, time)
  else
    finish.put_back(job.id, rec)
  end
end
settle.groups()
wake.up() -- a sleeping worker may have to wake earlier than it knows
W.commit()
return { job.state, 1 }
