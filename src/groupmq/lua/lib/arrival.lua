--[[
Jobs come into being here, whoever makes them: a producer's add, or a tick of a repeat.

What describes a new job, in this order: id, priority, due (epoch ms, 0 = now), order (8 bytes, false = by time),
ttl (ms or false), body.
]]
--- @include "lib/finish"
--- @include "lib/events"
local arrival = {}
--- @private
local stored = W.list('HSET', K.jobs)
local ttls = {} -- job id -> when its ttl ends, false = it has none any more; a job may be replaced within a call
local added, n_added = nil, 0 -- columns of the new ones
local order_now = record.order(meta.next_order())

local function store(id, created, priority, due, order, ttl, body)
  local later = due > now
  order = order or (later and record.order(due)) or order_now
  local rec = record.build(priority, order, meta.next_seq(), created, body)
  local n = #stored
  stored[n + 1], stored[n + 2] = id, rec
  if ttl then
    -- Its time to start counts from when it may.
    ttls[id] = (later and due or now) + ttl
    horizon.note(ttls[id])
  end
  return rec, later
end

-- A new job goes where its time says: to the waiting of its group `g`, or outside until it is due.
function arrival.enter(g, id, priority, due, order, ttl, body)
  local rec, later = store(id, now, priority, due, order, ttl, body)
  if events.on then
    added, n_added = added or events.columns('added', 2), n_added + 1
    added[2][n_added], added[3][n_added] = id, g.id
  end
  if later then
    finish.delay(id, rec, due)
  else
    gate.arrive(g)
    record.remember(id, rec)
    members.put(g, record.member(id, rec))
  end
end

-- A job that is still delayed becomes another in all but its id and when it was made, by which whoever waits knows it.
function arrival.replace(id, created, priority, due, order, ttl, body)
  ttls[id] = false
  store(id, created, priority, due, order, ttl, body)
  W.zadd(K.delayed, W.whole(due), id)
  horizon.note(due)
end

-- Whether the group takes one more live job, and count it; only where groups have a bound.
function arrival.fits(g)
  if not rules.max_group or g.id == '' then return true end
  if not g.size then g.size = redis.call('ZCARD', group.key(g)) + g.running + g.delayed end
  if g.size >= rules.max_group then return false end
  g.size = g.size + 1
  return true
end

W.before_commit[#W.before_commit + 1] = function()
  for id, ends in pairs(ttls) do
    if ends then
      W.zadd(K.expiring, W.whole(ends), id)
      if not meta.ttls then W.hset(K.meta, 'ttls', '1') end
    else
      W.zrem(K.expiring, id)
    end
  end
end
