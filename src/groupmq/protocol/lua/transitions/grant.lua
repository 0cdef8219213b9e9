--[[
Grant: a job that was just added starts at an idle worker that has offered a slot (lib/offer.lua), without waiting for a
call of that worker. A job that its worker has not received is released again.
]]
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/whole"
--- @include "lib/meta"
--- @include "lib/horizon"
--- @include "lib/group"
--- @include "lib/group_state"
--- @include "lib/members"
--- @include "lib/prefetch"
--- @include "lib/lease"
--- @include "lib/lease_changes"
--- @include "lib/events"
--- @include "lib/measure"
--- @include "lib/offer"
--- @include "lib/writes"
--- @include "lib/requester"
--- @include "lib/wake"
--- @include "transitions/release"
local grant_offered, take_back_granted, withdraw_offer, granted_jobs, offer_slot
--- @private
local GRACE = 100

-- Whether any call would start this job next: nothing is due, and its group need not wait. Nothing else is ready,
-- because an offer stands. Groups that run several jobs at once or may have to wait are left to `advance`, which counts
-- their starts.
local function may_start(g, member)
  if meta.paused or horizon.is_reached() or not prefetch.group_allows(g) then return false end
  group_state.refresh(g)
  return g.state == 'ready' and g.head == member
end

-- Grant the new job `id`, which has just joined its group, to the worker whose offer stands, if there is one.
function grant_offered(g, id, rec, member)
  local worker, lease_ms = offer.standing()
  if not (worker and may_start(g, member)) then return end
  members.pop(g, 1)
  group.start(g)
  local value = lease_changes.pack(g.id, worker, false, lease.GRANTED)
  local fence = lease_changes.grant({ id }, { value }, whole(now + lease_ms))
  horizon.put(now + lease_ms)
  measure.wait(0)
  events.give('active', { id }, { g.id }, { 1 }, worker)
  offer.use(worker, lease_ms, id, fence, rec)
end

-- Release the job that was granted to `worker` if it cannot have begun: nobody has received it, or `received` (the
-- fence of the last grant that the worker has received) says that the worker has not. Returns true if it was released.
function take_back_granted(worker, received)
  local grantee, id, fence = offer.granted()
  if grantee ~= worker or (received and received >= fence) then return false end
  if not (received or offer.is_unread(worker)) then return false end
  local l, rec = lease.load({ id })[1], redis.call('HGET', K.jobs, id)
  offer.forget(worker, false)
  if not (l and rec and l.fence == fence) then return false end
  release_unstarted(id, l, rec)
  return true
end

-- End the offer of a worker that takes no more jobs, and release a job that it has not received. `received`: as in
-- take_back_granted.
function withdraw_offer(worker, received)
  take_back_granted(worker, received)
  offer.withdraw(worker)
end

-- The job that was granted to the caller of `advance` but not received, for the reply to this call: in the form in
-- which `take_next` returns jobs, and when it was granted; nil if there is none. Its lease starts again, because the
-- worker counts it from this call.
function granted_jobs(who)
  local worker, id, fence = offer.granted()
  if not worker or worker ~= who.worker then return nil end
  if (who.received or 0) >= fence then
    offer.forget(worker, true)
    return nil
  end
  if who.take == 0 or lease.is_over(id) then return nil end
  local jobs, rows, granted_at = requester.granted(id, fence)
  offer.forget(worker, false)
  if not jobs[1][1] then return nil end
  W.zadd(K.active, whole(now + who.lease), id)
  horizon.put(now + who.lease)
  horizon.call_again(now)
  -- The caller may have popped the marker, and this call takes nothing else.
  if redis.call('ZCARD', K.ready) > 0 then wake.up() end
  return jobs, rows, granted_at
end

-- Store the offer of a worker that found nothing more to start, if it makes offers and `may` is true. But if a job was
-- granted to another worker that has not received it, that worker may be gone: the job is released, and the caller asks
-- again at once. A worker that has made its offer may not block on its key yet, so the job is left to it for GRACE ms.
function offer_slot(who, may)
  local grantee, _, fence = offer.granted()
  if grantee and grantee ~= who.worker then
    local till = math.floor(fence / 1000) + GRACE -- fences are times in microseconds
    if till > now then
      horizon.call_again(till)
    elseif take_back_granted(grantee) then
      horizon.call_again(now)
    end
  elseif who.offers and may then
    offer.make(who.worker, who.lease)
  end
end
