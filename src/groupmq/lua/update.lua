--[[
Replace a job's data. A handler that runs already keeps what it was given; the next attempt sees the new data.

Arguments  id
Blob       the new data
Reply      the state of the job, '' if there is none
]]
--- @include "lib/find"
local job = find.jobs({ A.id })[1]
if not job.state then return '' end
W.hset(K.jobs, job.id, record.with_data(job.rec, ARGV[2] or ''))
W.commit(true)
return job.state
