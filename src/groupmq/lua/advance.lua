--[[
Report the outcomes of a batch AND take up to `take` new jobs, in one trip. Also does what time has made due, so
delays, back-offs and lease expiries need nobody else.

Arguments  worker, lane, request (its number in that lane), completed and others (lib/outcome.lua), take, lease (ms),
           row (jobs of a group to take together, lib/take.lua; absent = 1),
           policy = {max_attempts, max_stalled (-1 = no limit), keep = {completed, failed}},
           batch and epoch (lib/turn.lua; only of exclusive queues)
Blob       the return values of the completed jobs, joined
Reply      {now, ms until something is due or -1, places of the refused outcomes, the completed counted first,
            stalled (id, group, final ...),
            jobs = {ids (null = its lease stands no more), token of the first, states ({} = all fresh), records},
            ms until the next tick of a repeat or -1, epoch of the worker's turn or 0,
            lengths of the rows, {} = each job by itself}
Cost       O(outcomes + take * row) reads and writes; about 3 commands a row and 25 a call
]]
--- @include "lib/outcome"
--- @include "lib/due"
--- @include "lib/take"
--- @include "lib/lane"
--- @include "lib/settle"
--- @include "lib/wake"
local tick = meta.repeat_at and math.max(0, meta.repeat_at - now) or -1
local last = lane.last(A.lane, A.request)
if last then
  local jobs, rows = lane.jobs(last)
  return { now, 0, last[1], {}, jobs, tick, turn.epoch(A.worker), rows }
end

local refused = outcome.complete(A.completed, ARGV[2] or '', A.policy.keep.completed, A.worker)
outcome.apply(A.others, refused, #A.completed[1])
local stalled = due.expire(A.policy)
-- What may have expired must not start: when there is more of it than one call fails, the taking waits for the next.
local n = due.overdue() and A.take or 0
due.promote()
due.unpark()
local jobs, rows, left, epoch = take.jobs(n, A)
retention.settle(A.policy.keep)
if settle.groups() or left or horizon.moved() then wake.up() end
lane.remember(A.lane, A.request, refused, jobs[1], jobs[2])
W.commit()
return { now, horizon.wait(), refused, stalled, jobs, tick, epoch, rows }
