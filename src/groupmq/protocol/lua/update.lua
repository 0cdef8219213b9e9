--[[
Replace the data of a job. A handler that is running keeps the data it was given; the next attempt gets the new data.

Arguments
  id          job id
Blob       the new data
Reply      {the state of the job ('' = no such job), 1 = changed, 0 = no such job,
            2 = it may not have begun: ask again}
Events     none
Cost       O(1): some 15 commands
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/body_changes"
--- @include "lib/writes"
--- @include "lib/find"
--- @include "lib/recall"
--- @writes remembers
local job = find.jobs({ A.id })[1]
if not job.state then return { '', 0 } end
local pending = recall.pending(job)
if not pending then
  W.hset(K.jobs, job.id, body_changes.replace(job.id, job.rec, blob))
end
return commit({ job.state, pending and 2 or 1 })
