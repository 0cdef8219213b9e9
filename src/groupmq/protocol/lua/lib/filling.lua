--[[
Batches: jobs of one group, or without a group, that a worker gives to its handler in one call. Unlike prefetched jobs,
all of them start at once, so each has a lease of a running job.

A worker may let a group wait for a full batch. Nothing is stored for that: the call skips the group, and the worker
asks again when the head has waited long enough, or when it is woken because a job was added.
]]
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/meta"
--- @include "lib/record"
--- @include "lib/horizon"
--- @include "lib/members"
--- @include "lib/prefetch"
--- @include "lib/state"
--- @include "lib/waiting"
local filling = {}
--- @private

-- Whether several jobs of the group may start at once in one batch. A rate limit of the group counts each start. While
-- its breaker is open, only the probe may start. A job behind the head may be held, so that it must not start yet.
function filling.fits(g) return prefetch.keeps_order(g) and not (g.rate or g.opened or g.holds) end

-- Whether a ready group waits for a full batch: fewer than `size` jobs of it wait, and its head has waited less than
-- `wait` ms. A head that can only be alone in its batch, because of its group, or because it has run before or may run
-- only once, does not wait for other jobs. `default`: as for prefetch.may_lead.
function filling.waits(g, size, wait, default)
  if not filling.fits(g) then return false end
  local id = record.id_of(g.head)
  local rec = redis.call('HGET', K.jobs, id)
  if not rec then return false end
  local since, max = record.terms(rec)
  local time = math.min(since, now) + wait
  if time <= now or not prefetch.may_lead(state.load({ id })[1], max, default) then return false end
  local put, dropped = g.added and #g.added / 2 or 0, (g.removed and #g.removed or 0) + (g.popped or 0)
  if waiting.count(g) + put - dropped >= size then return false end
  horizon.call_again(time)
  return true
end

-- Take the head out of the group; returns it, and how many jobs may start with it, up to `n` with the head.
function filling.pop(g, n)
  local member, length = members.pop_row(g, n)
  if rules.event_window and g.id ~= '' then
    while length > 1 and record.order_of(g.stored[length]) + rules.event_window > now do length = length - 1 end
  end
  return member, length
end
