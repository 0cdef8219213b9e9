--[[
Report the outcomes of a batch AND take up to `take` new jobs, in one trip. Also does what time has made due, so
delays, back-offs and lease expiries need nobody else.

Arguments  worker, lane, request (its number in that lane), completed and others (lib/outcome.lua), take, lease (ms),
           policy = {max_attempts, max_stalled (-1 = no limit), keep = {completed, failed}}
Blob       the return values of the completed jobs, joined
Reply      {now, ms until something is due or -1, statuses of the completed, then of the others,
            stalled (id, group, final ...), jobs (id, token, state, record ...)}
Cost       O(outcomes + take) reads and writes; about 3 commands a job and 25 a call
]]
--- @include "lib/outcome"
--- @include "lib/due"
--- @include "lib/take"
--- @include "lib/lane"
--- @include "lib/settle"
--- @include "lib/wake"
local last = lane.last(A.lane, A.request)
if last then return { now, 0, last[2], {}, lane.jobs(last) } end

local statuses = outcome.complete(A.completed, ARGV[2] or '', A.policy.keep.completed)
for _, status in ipairs(outcome.apply(A.others)) do statuses[#statuses + 1] = status end
local stalled = due.expire(A.policy)
due.promote()
due.unpark()
local jobs, ids, tokens, left = take.jobs(A.take, A.worker, A.lease)
retention.settle(A.policy.keep)
if settle.groups() or left or horizon.moved() then wake.up() end
lane.remember(A.lane, A.request, statuses, ids, tokens)
W.commit()
return { now, horizon.wait(), statuses, stalled, jobs }
