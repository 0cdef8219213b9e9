--[[
Groups, as this call sees them: loaded in bulk, changed in memory, settled once at the end.

A group is in exactly one place, and `group.refresh` alone decides which:

  no waiting job             idle    no entry anywhere
  paused by an operator      paused  in neither zset
  running == limit           busy    in neither zset; the end of a run refreshes it
  its head may not start yet parked  in `parked`, by the time it may
  otherwise                  ready   in `ready`, by its head's priority and arrival

Whoever changes a group calls `group.touch`; `group.settle` writes the places of all touched groups. There is no
second list that also says "busy" and no lock with a life of its own, so no crash can make the two disagree.

The value in `groups`: running (2 bytes), delayed (4 bytes), then a msgpack map of holds, job id -> the time before
which that job must not start. A hold binds the group only while its job is the head.
Jobs without a group share the group '' that has no limit and is not counted among the groups.
]]
--- @include "lib/meta"
--- @include "lib/horizon"
--- @include "lib/record"
local group = {}
local loaded, touched, NONE = {}, {}, {}

local function fresh(gid, raw, conf)
  -- The common fields at once, and no more than 16: a table that grows is rehashed, a larger one costs twice as much.
  local g = {
    id = gid, key = K.group .. gid, raw = raw, running = 0, delayed = 0, limit = meta.limit, stored = NONE, pos = 1,
    known_all = false, at = false, place = false, score = 0, touched = false, stale = false,
  }
  if raw then
    g.running, g.delayed = struct.unpack('>I2I4', raw)
    g.holds = #raw > 6 and cmsgpack.unpack(string.sub(raw, 7)) or nil
  else
    g.known_all, g.at = true, 'none' -- no live job: its zset is empty, and it is in no index
  end
  if conf then
    local c = cmsgpack.unpack(conf)
    g.paused = c.paused
    g.limit = c.limit or g.limit
    if g.paused then g.at = 'none' end
  end
  if gid == '' then g.limit = math.huge end
  if g.running >= g.limit then g.at = 'none' end
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
  local conf = meta.overrides and redis.call('HMGET', K.conf, unpack(missing)) or {}
  for i = 1, n do loaded[missing[i]] = fresh(missing[i], raw[i], conf[i]) end
end

function group.get(gid)
  if not loaded[gid] then group.load({ gid }) end
  return loaded[gid]
end

function group.touch(g)
  g.stale = true
  if not g.touched then
    g.touched = true
    touched[#touched + 1] = g
  end
end

function group.touched() return touched end

function group.is_touched(gid)
  local g = loaded[gid]
  return g and g.touched
end

-- Read at least `n` waiting members beyond the ones this call has removed.
function group.look_ahead(g, n)
  local want = n + g.pos - 1 + (g.ngone or 0)
  if g.known_all or #g.stored >= want then return end
  g.stored = redis.call('ZRANGE', g.key, 0, want - 1)
  g.known_all = #g.stored < want
end

-- The first waiting member with this call's own changes applied, or nil.
function group.head(g)
  group.look_ahead(g, 1)
  while g.gone and g.stored[g.pos] and g.gone[g.stored[g.pos]] do
    g.gone[g.stored[g.pos]] = nil
    g.ngone = g.ngone - 1
    g.pos = g.pos + 1
    group.look_ahead(g, 1)
  end
  local kept, added = g.stored[g.pos], g.added and g.added[1]
  if kept and added then return kept < added and kept or added end
  return kept or added
end

function group.put(g, member)
  W.zadd(g.key, 0, member)
  local added = g.added or {}
  local at = #added
  while at > 0 and member < added[at] do at = at - 1 end
  table.insert(added, at + 1, member)
  g.added = added
  group.touch(g)
end

function group.drop(g, member)
  W.zrem(g.key, member)
  local added = g.added or {}
  if added[1] == member then
    table.remove(added, 1)
  elseif g.stored[g.pos] == member then
    g.pos = g.pos + 1
  else
    for i = 1, #added do
      if added[i] == member then
        table.remove(added, i)
        break
      end
    end
    g.gone = g.gone or {}
    g.ngone = (g.ngone or 0) + 1
    g.gone[member] = true
  end
  group.release(g, record.id_of(member))
  group.touch(g)
end

-- `id` must not start before `time`; while it is the head, neither does anything behind it.
function group.hold(g, id, time)
  g.holds = g.holds or {}
  g.holds[id] = time
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

-- The one decision. Busy is asked first, since it is the common answer and needs no look at the zset.
function group.refresh(g)
  g.stale = false
  g.due = nil
  if g.running >= g.limit then
    g.place = 'busy'
    return
  end
  local head = group.head(g)
  if not head then
    g.place = 'idle'
  elseif g.paused then
    g.place = 'paused'
  else
    local hold = g.holds and g.holds[record.id_of(head)]
    if hold and hold > now then
      g.place, g.due = 'parked', hold
      horizon.note(hold)
    else
      g.place, g.score = 'ready', record.score(head)
    end
  end
end

local function save(g)
  if g.running == 0 and g.delayed == 0 and not group.head(g) then
    W.hdel(K.groups, g.id)
  else
    local value = struct.pack('>I2I4', g.running, g.delayed)
    if g.holds then value = value .. cmsgpack.pack(g.holds) end
    if value ~= g.raw then W.hset(K.groups, g.id, value) end
  end
end

-- Note the places of all touched groups; true if one of them may start a job now.
function group.settle()
  local any_ready = false
  for i = 1, #touched do
    local g = touched[i]
    if g.stale then group.refresh(g) end
    if g.place == 'ready' then
      any_ready = true
      W.zadd(K.ready, g.score, g.id)
    elseif g.at ~= 'none' then
      W.zrem(K.ready, g.id)
    end
    if g.place == 'parked' then
      W.zadd(K.parked, g.due, g.id)
    elseif g.at ~= 'none' and g.at ~= 'ready' then
      W.zrem(K.parked, g.id)
    end
    save(g)
  end
  return any_ready and not meta.paused
end
