--[[
Fail a job for good, by an operator's word. A running one loses its lease and its worker is told.

Arguments  id, reason, keep = {completed, failed}
Reply      the state the job was found in, '' if there is none, and 1 if it was changed
]]
--- @include "lib/find"
--- @include "lib/settle"
--- @include "lib/wake"
local job = find.jobs({ A.id })[1]
if not job.state or job.state == 'completed' or job.state == 'failed' then return { job.state or '', 0 } end
local s = job.lease and lease.state_untold(job.lease) or state.load({ job.id })[1] or state.fresh()
find.detach(job)
finish.failed(job.id, record.group_of(job.rec), s, A.reason, '')
retention.settle(A.keep)
if settle.groups() then wake.up() end
W.commit()
return { job.state, 1 }
