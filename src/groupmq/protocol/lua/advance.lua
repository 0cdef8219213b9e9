--[[
Report the outcomes of runs and take up to `take` new jobs in one round trip. The call also does everything that is due
by now, so delays, back-offs and expired leases need no other process.

Arguments
  worker      id of the worker
  requester   the part of the worker that makes the request (lib/requester.lua)
  request     the number that it gives to this request
  completed   completed jobs, in columns (lib/completions.lua)
  others      all other outcomes (lib/outcome.lua)
  take        how many jobs to start now
  lease       ms
  row         how many jobs of one group to take together, the prefetched ones included; absent = 1
  together    the jobs of one row start at once, as a batch (lib/filling.lua); ms that a group waits for a full batch,
              0 = none; absent = the jobs behind a head are prefetched
  fill        how many jobs to take in all, those prefetched from other groups included (lib/reserve.lua); absent = none
  policy      {max_attempts, max_stalled (-1 = no limit), keep = {completed, failed}}
  confirms    true = the worker confirms when it begins a job; absent = it begins each job as soon as it has it
  offers      true = if nothing is left to start, the worker offers a free slot (lib/offer.lua); false = it no
              longer does, and a grant that it has not received goes back; absent = it does not, and an earlier offer
              stands
  received    fence of the last grant that the worker has received (lib/offer.lua); absent = it has received none
  batch       jobs per turn (lib/turn.lua); exclusive queues only
  epoch       the turn that the worker believes it has, 0 = none; exclusive queues only
Blob       the return values of the completed jobs, joined
Reply      {now (for a request that was sent again, or a job that is granted again: when it was taken),
            ms until something is due or -1,
            indexes of the refused outcomes (completed jobs are counted first),
            stalled jobs, flat: id, group, what happens next (transitions/stall.lua),
            jobs that failed because their ttl has ended, flat: id, group, 1 if it blocks its group,
            jobs = {ids (null = the lease no longer stands), first fence, states ({} = no job has run yet), records,
            if there are large jobs: data of their records, flat: index, data ...},
            ms until the next tick of a repeat or -1, epoch of the worker's turn or 0,
            for each group how many of its jobs were taken together, {} = one each; prefetched heads come last,
            0, or the fence up to which the worker must give back its prefetched heads (lib/reserve.lua),
            1 if the worker may have received these jobs before: the request was sent again, or an add has granted the
            job (lib/offer.lua); else 0}
Events     active, begun, completed, retrying, failed, stalled, blocked, drained
Cost       O(outcomes + take * row) reads and writes: about 3 commands per group and 25 per call;
           lib/budget.lua bounds the jobs that one call handles
]]
--- @include "lib/args"
--- @include "lib/clock"
--- @include "lib/meta"
--- @include "lib/horizon"
--- @include "lib/budget"
--- @include "lib/completions"
--- @include "lib/outcome"
--- @include "lib/due"
--- @include "lib/reserve"
--- @include "lib/serve"
--- @include "transitions/grant"
--- @include "lib/requester"
--- @include "lib/turn"
--- @include "lib/wake"
--- @include "lib/retention"
--- @writes allow-oom
local tick = meta.repeat_at and math.max(0, meta.repeat_at - now) or -1
local last = requester.last(A.requester, A.request)
if last then
  local jobs, rows, taken_at = requester.jobs(last)
  local stalled, expired = requester.ended(last)
  return { taken_at or now, 0, requester.refused(last), stalled, expired, jobs, tick, turn.epoch(A.worker), rows, 0, 1 }
end

budget.spend(#A.completed[1] + #A.others)
local refused = completions.apply(A.completed, blob, A.policy.keep.completed, A.worker)
outcome.apply(A.others, refused, #A.completed[1])
local room = budget.left()
local stalled, expired, more_overdue, more_due = due.everything(A.policy)
-- A job past its ttl must not start. If more of them are due than one call can fail, this call takes no job at all.
local n = A.take
if more_overdue then n, A.fill = 0, nil elseif budget.left() < room then n, A.fill = budget.share(n), nil end
if n < A.take then horizon.call_again(now) end
local left, epoch
local jobs, rows, granted_at = granted_jobs(A)
if granted_at then epoch = 0 else jobs, rows, left, epoch = serve_worker(n, A, more_due) end
if A.offers == false then withdraw_offer(A.worker, A.received or 0) end
retention.apply(A.policy.keep)
if left then wake.up() end
requester.remember(A.requester, A.request, refused, jobs, A.together and rows or false, stalled, expired)
local again = granted_at and 1 or 0
return commit({ granted_at or now, 0, refused, stalled, expired, jobs, tick, epoch, rows, reserve.wanted(), again }, 2)
