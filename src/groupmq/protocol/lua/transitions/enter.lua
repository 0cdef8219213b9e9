--[[
Enter: a new job is created, by a producer's add or by a tick of a repeat.

The parameters of a new job, in this order: id, priority, due (epoch ms, 0 = now), order (8 bytes, false = by time), ttl
(ms or false), body, and, for a large job, perhaps its data, which `body` then does not have (lib/bodies.lua).
]]
--- @include "lib/call"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/whole"
--- @include "lib/meta"
--- @include "lib/record"
--- @include "lib/body_changes"
--- @include "lib/writes"
--- @include "lib/horizon"
--- @include "lib/gate"
--- @include "lib/members"
--- @include "lib/waiting"
--- @include "lib/events"
--- @include "transitions/delay"
local enter_job, replace_delayed_job, group_has_room, note_ttls
--- @private

-- Set when the ttl of a job ends. `call.ttls`: job id -> that time, false = the job has no ttl now, because it was
-- replaced.
local function set_ttl(id, ends)
  call.ttls = call.ttls or {}
  call.ttls[id] = ends
end

local function store(id, created, priority, due, order, ttl, body, data, replaces)
  local later = due > now
  if not order and later then order = record.order(due) end
  if not order then
    order = call.order_now or record.order(meta.next_order())
    call.order_now = order
  end
  body = body_changes.enter(id, body, data, replaces)
  local sort_key = record.sort_key(priority, order, meta.next_seq())
  local rec = record.build(sort_key, created, body)
  W.hset(K.jobs, id, rec)
  if ttl then
    -- The ttl counts from the time at which the job may start.
    local ends = (later and due or now) + ttl
    set_ttl(id, ends)
    horizon.add(ends)
  end
  return rec, later, sort_key
end

-- Add a new job to the waiting jobs of its group `g`, or delay it until it is due. Returns its record and, if it waits,
-- its member.
function enter_job(g, id, priority, due, order, ttl, body, data)
  local rec, later, sort_key = store(id, now, priority, due, order, ttl, body, data)
  if not rules.silent then
    local added = events.columns('added', 2)
    local n = #added[2] + 1
    added[2][n], added[3][n] = id, g.id
  end
  if later then
    delay_job(id, rec, due)
    return rec
  end
  gate.arrive(g)
  record.remember(id, rec)
  local member = rules.ageing and record.member(id, rec) or sort_key .. id
  members.put(g, member)
  return rec, member
end

-- Replace a job that is still delayed. It keeps its id and creation time, by which waiting clients identify it.
function replace_delayed_job(id, created, priority, due, order, ttl, body, data)
  set_ttl(id, false)
  store(id, created, priority, due, order, ttl, body, data, true)
  W.zadd(K.delayed, whole(due), id)
  horizon.add(due)
end

-- Whether the group has room for one more live job (`max_group`); if so, count it.
function group_has_room(g)
  if not rules.max_group or g.id == '' then return true end
  if not g.size then g.size = waiting.count(g) + g.running + g.delayed end
  if g.size >= rules.max_group then return false end
  g.size = g.size + 1
  return true
end

function note_ttls()
  for id, ends in pairs(call.ttls) do
    if ends then
      W.zadd(K.expiring, whole(ends), id)
      meta.ttls = true
    else
      W.zrem(K.expiring, id)
    end
  end
end
