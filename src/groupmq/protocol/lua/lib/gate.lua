--[[
Why a group waits although it has a free slot: the time before which its head must not start.

  hold    of the head: the back-off after its failure, or its handler raised Snooze
  rest    of the group: a handler raised RateLimited
  breaker of the group: too many attempts in a row have failed (lib/breaker_changes.lua)
  window  of the group: it waits for late arrivals (Ordering.arrival)
  order   of the head: until its order + a window has passed (Ordering.event_time)
  rate    of the group: its n-th last start is too recent

None of this applies to jobs without a group.
]]
--- @include "lib/clock"
--- @include "lib/meta"
--- @include "lib/record"
--- @include "lib/rate"
local gate = {}
--- @private
local FAR = 9007199254740992 -- 2^53: a larger order is not a time

-- Whether the rules of the queue may make any head wait. Then the stored value of a group does not prove that it is
-- ready.
function gate.is_everywhere() return rules.event_window ~= nil or rules.group_rate ~= nil end

-- Open or extend the window of a group in which a job arrives. The first job opens a window, and each further one
-- extends it while it is open. Jobs that arrive after it has closed are sorted among the waiting jobs, and the group
-- does not wait for them.
function gate.arrive(g)
  local window = rules.arrival_window
  if not window or g.id == '' then return end
  if not g.head then
    g.since, g.till, g.gated = now, now + window, true
  elseif g.till and g.till > now then
    g.till = math.min(g.since + rules.max_wait, now + window)
    g.stale = true -- even if the head is the same: the time it waits for has changed
  end
end

-- The time before which the head must not start, 0 = none. Clears a rest or window that is over.
function gate.opens(g)
  local time = g.holds and g.holds[record.id_of(g.head)] or 0
  if g.rest then
    if g.rest <= now then g.rest = nil elseif g.rest > time then time = g.rest end
  end
  if g.opened and g.opened > time then time = g.opened end
  if g.till then
    if g.till <= now then g.since, g.till = nil, nil elseif g.till > time then time = g.till end
  end
  if rules.event_window then
    local passed = math.min(record.order_of(g.head) + rules.event_window, FAR)
    if passed > time then time = passed end
  end
  return g.rate and math.max(time, rate.next(g)) or time
end
