--[[
Groups, as this call sees them: loaded in bulk, changed in memory, settled once at the end.

A group is in exactly one place, and `group.refresh` alone decides which:

  no waiting job             idle    no entry anywhere
  paused by an operator      paused  in neither zset
  running == limit           busy    in neither zset; the end of a run refreshes it
  its head may not start yet parked  in `parked`, by the time it may
  otherwise                  ready   in `ready`, where lib/line.lua puts it

Whoever changes a group calls `group.touch`; `settle.groups` writes the places of all touched groups. There is no
second list that also says "busy" and no lock with a life of its own, so no crash can make the two disagree.

The value in `groups`: running (4 bytes), delayed (4), the first waiting member (2 bytes of length, then the member;
the same as the first of the zset, kept here so that neither an add nor the end of a run has to look there), then, if
the group may have to wait, a msgpack map (lib/gate.lua): h = holds, job id -> the time before which that job must not
start, binding while it is the head; r = rest of the group; s, u = since and until when it waits for arrivals.
Jobs without a group share the group '' that has no limit and is not counted among the groups.
]]
--- @include "lib/meta"
--- @include "lib/horizon"
--- @include "lib/record"
--- @include "lib/gate"
--- @include "lib/line"
local group = {}
--- @private
local loaded, touched, NONE = {}, {}, {}

-- What the operator or the lack of a group changes about it.
local function configure(g, conf)
  local c = conf and cmsgpack.unpack(conf) or NONE
  g.paused = c.paused
  g.limit = g.id == '' and math.huge or c.limit or g.limit
  if c.rate then g.rate, g.gated = c.rate, true end
  if g.at ~= 'unknown' then
    local may = g.head and not g.paused and g.running < g.limit
    g.at = may and (g.gated and 'unknown' or 'ready') or 'none'
  end
end

-- What makes the group wait, as stored behind its head.
local function unpack_waits(g, raw)
  local waits = cmsgpack.unpack(raw)
  g.holds, g.rest, g.since, g.till, g.gated = waits.h, waits.r, waits.s, waits.u, true
end

function group.pack_waits(g)
  if not (g.holds or g.rest or g.till) then return '' end
  return cmsgpack.pack({ h = g.holds, r = g.rest, s = g.since, u = g.till })
end

local function fresh(gid, raw, conf)
  local running, delayed, head, waits, at = 0, 0, '', nil, 'none'
  local limit = meta.limit
  if not raw then
    raw = false
  elseif #raw < 10 then
    -- Not a value of ours: nothing of this group starts until repair has counted it anew, and no other group suffers.
    running = math.huge
  else
    local after
    running, delayed, head, after = struct.unpack('>I4I4I2c0', raw)
    if after <= #raw then
      waits, at = string.sub(raw, after), 'unknown' -- parked, ready, or due and not yet moved
    elseif running < limit and head ~= '' then
      at = gate.always and gid ~= '' and 'unknown' or 'ready'
    end
  end
  head = head ~= '' and head
  -- All fields at once, and no more than 16: a table that grows is rehashed, a larger one costs twice as much.
  local g = {
    id = gid, raw = raw, running = running, delayed = delayed, limit = limit, head = head, was_head = head, at = at,
    holds = nil, place = false, score = 0, touched = false, stale = false, stored = false, added = false,
    removed = false,
  }
  if waits then unpack_waits(g, waits) end
  if gate.always and gid ~= '' then g.gated, g.rate = true, rules.group_rate end
  if conf or gid == '' then configure(g, conf) end
  return g
end

-- Load `gids` (repetitions welcome) with one command.
function group.load(gids)
  local missing, n = {}, 0
  for i = 1, #gids do
    local gid = gids[i]
    if loaded[gid] == nil then
      loaded[gid] = false
      n = n + 1
      missing[n] = gid
    end
  end
  if n == 0 then return end
  local raw = redis.call('HMGET', K.groups, unpack(missing))
  local conf = meta.overrides and redis.call('HMGET', K.conf, unpack(missing)) or NONE
  for i = 1, n do loaded[missing[i]] = fresh(missing[i], raw[i], conf[i]) end
end

function group.get(gid)
  local g = loaded[gid]
  if not g then
    group.load({ gid })
    g = loaded[gid]
  end
  return g
end

function group.key(g) return K.group .. g.id end

-- This call has changed something of the group; settling must look at it.
function group.enlist(g)
  g.touched = true
  touched[#touched + 1] = g
end

-- Something about the group changed that may move it: its head, its counts, a hold, a switch.
function group.touch(g)
  g.stale = true
  if not g.touched then group.enlist(g) end
end

function group.touched() return touched end

function group.is_touched(gid)
  local g = loaded[gid]
  return g and g.touched
end

-- `id` must not start before `time`; while it is the head, neither does anything behind it.
function group.hold(g, id, time)
  g.holds = g.holds or {}
  g.holds[id], g.gated = time, true
  group.touch(g)
end

function group.release(g, id)
  if g.holds and g.holds[id] then
    g.holds[id] = nil
    if next(g.holds) == nil then g.holds = nil end
    group.touch(g)
    return true
  end
  return false
end

-- Nothing of the group starts before `time`, whichever job is its head.
function group.rest(g, time)
  g.rest, g.gated = math.max(g.rest or 0, time), true
  group.touch(g)
end

-- One of its jobs has been taken, to run.
function group.start(g)
  g.running = g.running + 1
  if g.gated or rules.round_robin then g.turn, g.started = nil, (g.started or 0) + 1 end
end

-- The one decision.
function group.refresh(g)
  g.stale = false
  if g.till and not g.head then g.since, g.till = nil, nil end
  if g.running >= g.limit then
    g.place = 'busy'
  elseif not g.head then
    g.place = 'idle'
  elseif g.paused then
    g.place = 'paused'
  else
    local time = g.gated and gate.opens(g) or 0
    if time > now then
      g.place, g.due = 'parked', time
      horizon.add(time)
    else
      g.place, g.score = 'ready', line.score(g)
    end
  end
end
