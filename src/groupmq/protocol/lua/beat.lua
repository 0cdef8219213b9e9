--[[
One heartbeat of a worker: renew its leases and its turn, and record that it is alive. The call may carry outcomes, for
a worker whose event loop is blocked and cannot report them.

Arguments
  worker      id of the worker
  info        presence, as text; absent = leave the stored presence as it is
  lease       ms
  held        the leases to renew, flat: id, fence ...
  completed   completed jobs, as in advance; absent = no outcomes
  others      all other outcomes, as in advance; absent = no outcomes
  keep        {completed, failed}: how many to keep; only with outcomes or `unseen`
  refuses     the event loop of the worker is blocked: fence of the last grant that it has received (lib/offer.lua). A
              grant after that is taken back, and the worker offers no slot; absent = the loop works
  unseen      also for a blocked loop: {requester, request} of a call whose reply it has not seen. The jobs of that
              reply go back; absent = there is none
Blob       the return values of the completed jobs, joined
Reply      {ids whose lease no longer belongs to this worker, ms until the next tick of a repeat or -1,
            fences of runs to cancel, fences of runs that outlive their job (lib/stopping.lua),
            fences of jobs to give back that have not begun,
            indexes of the refused outcomes (completed jobs are counted first),
            0, or the fence up to which the worker must give back its prefetched heads (lib/reserve.lua),
            with `refuses` the fence up to which grants that come later are void, else 0,
            1 if the call of `unseen` was carried out, and its jobs were taken back; else 0}
Events     begun, completed, retrying, failed, blocked, drained; without outcomes none
Cost       O(held + outcomes) fields in some ten commands; while there are interrupts or stopping runs, also all of them
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/meta"
--- @include "lib/writes"
--- @include "lib/horizon"
--- @include "lib/lease"
--- @include "lib/requester"
--- @include "lib/completions"
--- @include "lib/outcome"
--- @include "lib/turn"
--- @include "lib/wake"
--- @include "lib/retention"
--- @include "lib/interrupts"
--- @include "lib/reserve"
--- @include "lib/stopping"
--- @include "transitions/begin"
--- @include "transitions/grant"
--- @writes allow-oom
local refused = {}
if A.others then
  refused = completions.apply(A.completed, blob, A.keep.completed, A.worker)
  outcome.apply(A.others, refused, #A.completed[1])
end
local unseen = A.unseen and requester.unbegun(A.unseen[1], A.unseen[2])
if unseen then outcome.release(unseen) end
if A.keep then retention.apply(A.keep) end
if A.refuses then withdraw_offer(A.worker, A.refuses) end
local ids, lost = {}, {}
for i = 1, #A.held, 2 do ids[#ids + 1] = A.held[i] end
local leases = lease.load(ids)
for i = 1, #ids do
  local l = leases[i]
  if l and l.fence == A.held[2 * i] then
    W.zadd(K.active, now + A.lease, ids[i])
    -- Workers renew only the leases of runs whose handler was called. The begin of a prefetched job is published when
    -- its worker reports it, after the end of the job before it.
    if not (l.begun or l.prefetched) then begin_job(ids[i], l) end
    horizon.put(now + A.lease)
  else
    lost[#lost + 1] = ids[i]
  end
end
if turn.renew(A.worker, A.lease) then wake.up() end
if A.info then W.hset(K.workers, A.worker, string.format('%.0f', now) .. ' ' .. A.info) end
local asked, stopped = interrupts.of(A.worker), stopping.of(A.worker)
local tick = meta.repeat_at and math.max(0, meta.repeat_at - now) or -1
local void, taken_back = A.refuses and meta.stamp or 0, unseen and 1 or 0
return commit({ lost, tick, asked[1], stopped, asked[2], refused, reserve.wanted(), void, taken_back })
