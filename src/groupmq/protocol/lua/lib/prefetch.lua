--[[
Which jobs may be prefetched, that is, taken before a slot of the worker is free for them (lib/lease.lua): as a row,
behind a job of their group (transitions/take.lua), or as a reserve, heads of other groups (lib/reserve.lua). All rules
are here. Prefetching may do nothing but make other groups wait a little: a prefetched job starts in the order in which
it would have started anyway, and loses nothing if its worker dies before it is known whether the job had started.

Which jobs of a batch start together follows the same rules, except that they need not start in line (lib/filling.lua).
]]
--- @include "lib/meta"
--- @include "lib/record"
local prefetch = {}
--- @private

-- Whether the order of the queue allows it. With tickets or ageing another group may become next before the job starts;
-- a turn counts its jobs one by one.
function prefetch.in_queue() return not (rules.round_robin or rules.ageing or rules.exclusive) end

-- Whether it also allows to take heads of other groups, and to offer slots (lib/offer.lua). With a rate limit, such a
-- job would start later than the limit counts it.
function prefetch.heads_in_queue() return not rules.rate end

-- Whether jobs are prefetched for this caller of `advance`. max_stalled = 0 means "never redeliver after a crash".
function prefetch.is_on(who) return prefetch.in_queue() and who.policy.max_stalled ~= 0 end

-- Whether no other worker can start a later job of the group beside those that one call takes: it runs one job at a
-- time. Jobs without a group have no order to keep.
function prefetch.keeps_order(g) return g.concurrency == 1 or g.id == '' end

-- Whether the head of the group starts next, whoever takes it. A group that may have to wait is decided only when a
-- slot is free.
function prefetch.group_allows(g) return not g.gated and prefetch.keeps_order(g) end

-- The same for jobs behind its head. Jobs without a group are prefetched as heads.
function prefetch.row_allows(g) return not g.gated and g.concurrency == 1 end

-- How many of the first `n` stored members may be taken together: those with the priority of the head.
function prefetch.row_length(stored, n)
  local last, priority = math.min(#stored, n), record.priority_of(stored[1])
  while record.priority_of(stored[last]) ~= priority do last = last - 1 end
  return last
end

-- Whether jobs may be taken together with this head. `s`: its state, false or nil if it never ran; `max`: of
-- record.terms; `default`: the attempts of a job that does not say how many it has. The outcome of a job that may run
-- only once must be reported at once, so nothing is prefetched behind it.
function prefetch.may_lead(s, max, default) return not s and (max > 0 and max or default) > 1 end

-- Whether the job may be prefetched: it never ran, has no ttl, and may run again if its worker dies before it is known
-- whether it had started. `starts`: it starts at once, as one of a batch, so that its ttl does not matter.
function prefetch.job_allows(s, max, has_ttl, default, starts)
  return not s and (starts or not has_ttl) and (max > 0 and max or default) > 1
end
