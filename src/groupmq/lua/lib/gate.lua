--[[
What makes a group wait although it has a free slot: the time before which its head must not start.

  hold    of the head: the back-off after its failure
  rest    of the group: a handler said that it comes too often (RateLimited)
  window  of the group: it waits for late arrivals (Ordering.arrival)
  order   of the head: until its order + a window has passed (Ordering.event_time)
  rate    of the group: its n-th last start is too young

Jobs without a group wait for nobody: nothing of this is theirs.
]]
--- @include "lib/meta"
--- @include "lib/record"
--- @include "lib/rate"
local gate = {}
--- @private
local FAR = 9007199254740992 -- 2^53: an order beyond it is no time
local event_window, window, max_wait = rules.event_window, rules.arrival_window, rules.max_wait

-- True where any head may have to wait, whatever its group says: then a stored value does not tell "ready".
gate.always = event_window ~= nil or rules.group_rate ~= nil

-- A job joins the group from outside. The first opens a window, each further one extends it while it is open; once it
-- has closed, late arrivals take their place among those who wait, and no one waits for them.
function gate.arrive(g)
  if not window or g.id == '' then return end
  if not g.head then
    g.since, g.till, g.gated = now, now + window, true
  elseif g.till and g.till > now then
    g.till = math.min(g.since + max_wait, now + window)
    g.stale = true -- even if the head stays: the time it waits for has changed
  end
end

-- The time before which the head must not start, 0 = none. What is over is forgotten on the way.
function gate.opens(g)
  local time = g.holds and g.holds[record.id_of(g.head)] or 0
  if g.rest then
    if g.rest <= now then g.rest = nil elseif g.rest > time then time = g.rest end
  end
  if g.till then
    if g.till <= now then g.since, g.till = nil, nil elseif g.till > time then time = g.till end
  end
  if event_window then
    local passed = math.min(record.order_of(g.head) + event_window, FAR)
    if passed > time then time = passed end
  end
  return g.rate and math.max(time, rate.next(g)) or time
end
