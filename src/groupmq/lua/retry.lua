--[[
Run a failed job again from its original place, attempts counted anew.

Arguments  id
Reply      the state the job was found in, '' if there is none, and 1 if it was changed
]]
--- @include "lib/find"
--- @include "lib/settle"
--- @include "lib/wake"
local job = find.jobs({ A.id })[1]
if job.state ~= 'failed' then return { job.state or '', 0 } end
find.detach(job)
W.hdel(K.state, job.id)
finish.put_back(job.id, job.rec)
events.note('added', job.id, record.group_of(job.rec))
if settle.groups() then wake.up() end
W.commit()
return { job.state, 1 }
