--[[
Batches: jobs of one group, or without a group, that a worker gives to its handler in one call. Unlike prefetched jobs
all of them start at once, so each has a lease of a running job.

A worker may have a group wait for a full batch. Nothing is stored for that: the worker passes over the group, and asks
again when the head has waited long enough, or when it is woken because a job was added.
]]
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/meta"
--- @include "lib/record"
--- @include "lib/horizon"
--- @include "lib/group"
--- @include "lib/members"
local filling = {}
--- @private

-- Whether a ready group waits for a full batch: fewer than `size` jobs of it wait, and its head has waited less than
-- `wait` ms. A head that may run only once is a batch of its own and waits for no other job.
function filling.waits(g, size, wait)
  local rec = redis.call('HGET', K.jobs, record.id_of(g.head))
  if not rec then return false end
  local since, max = record.terms(rec)
  local time = math.min(since, now) + wait
  if time <= now or max == 1 then return false end
  local put, dropped = g.added and #g.added / 2 or 0, g.removed and #g.removed or 0
  if redis.call('ZCARD', group.key(g)) + put - dropped >= size then return false end
  horizon.note(time)
  return true
end

-- Whether several jobs of the group may start at once in one batch. Of a group that runs several at a time another
-- worker could start a later job beside them, and the rate of a group counts each start. While its breaker is open,
-- one job is tried; and a job behind the head may be held, so that it must not start yet.
function filling.fits(g) return (g.limit == 1 or g.id == '') and not (g.rate or g.opened or g.holds) end

-- Take the head out of the group; returns it, and how many jobs may start with it, up to `n` with the head.
function filling.pop(g, n)
  local member, length = members.pop_row(g, n)
  if rules.event_window and g.id ~= '' then
    while length > 1 and record.order_of(g.stored[length]) + rules.event_window > now do length = length - 1 end
  end
  return member, length
end
