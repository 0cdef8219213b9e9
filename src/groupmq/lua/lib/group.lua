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

The value in `groups`: running (4 bytes), delayed (4), the first waiting member (2 bytes of length, then the member;
the same as the first of the zset, kept here so that neither an add nor the end of a run has to look there), then a
msgpack map of holds, job id -> the time before which that job must not start. A hold binds the group only while its
job is the head.
Jobs without a group share the group '' that has no limit and is not counted among the groups.
]]
--- @include "lib/meta"
--- @include "lib/horizon"
--- @include "lib/record"
local group = {}
--- @private
local loaded, touched, NONE = {}, {}, {}

-- What the operator or the lack of a group changes about it.
local function configure(g, conf)
  local c = conf and cmsgpack.unpack(conf) or NONE
  g.paused = c.paused
  g.limit = g.id == '' and math.huge or c.limit or g.limit
  if g.at == 'ready' and (g.paused or g.running >= g.limit) then
    g.at = 'none'
  elseif g.at == 'none' and g.head and not g.paused and g.running < g.limit then
    g.at = 'ready'
  end
end

local function fresh(gid, raw, conf)
  local running, delayed, head, holds, at = 0, 0, '', nil, 'none'
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
      holds, at = cmsgpack.unpack(string.sub(raw, after)), 'unknown' -- parked, ready, or due and not yet moved
    elseif running < limit and head ~= '' then
      at = 'ready'
    end
  end
  head = head ~= '' and head
  -- All fields at once, and no more than 16: a table that grows is rehashed, a larger one costs twice as much.
  local g = {
    id = gid, raw = raw, running = running, delayed = delayed, limit = limit, head = head, was_head = head, at = at,
    holds = holds, place = false, score = 0, touched = false, stale = false, stored = false, added = false,
    removed = false,
  }
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

local function enlist(g)
  g.touched = true
  touched[#touched + 1] = g
end

-- Something about the group changed that may move it: its head, its counts, a hold, a switch.
function group.touch(g)
  g.stale = true
  if not g.touched then enlist(g) end
end

function group.touched() return touched end

function group.is_touched(gid)
  local g = loaded[gid]
  return g and g.touched
end

-- Read the first `n` stored members, so that taking them one by one needs no further look.
function group.look_ahead(g, n)
  if g.stored and (g.known_all or #g.stored >= n) then return end
  g.stored = redis.call('ZRANGE', group.key(g), 0, n - 1)
  g.known_all = #g.stored < n
  g.pos = 1
end

-- The first waiting member, this call's own changes applied, read anew.
local function find_head(g)
  local removed, pos = g.removed or NONE, g.pos or 1
  group.look_ahead(g, #removed + 1)
  while g.stored[pos] and removed[g.stored[pos]] do
    pos = pos + 1
    if not g.stored[pos] and not g.known_all then group.look_ahead(g, 2 * pos) end
  end
  g.pos = pos
  local first, added = g.stored[pos] or false, g.added or NONE
  for i = 2, #added, 2 do
    if not first or added[i] < first then first = added[i] end
  end
  return first
end

-- `added` and `removed` are kept as the arguments ZADD and ZREM will get; `removed` is a set as well.
function group.put(g, member)
  local added = g.added
  if added then
    added[#added + 1] = 0
    added[#added + 1] = member
  else
    g.added = { 0, member }
  end
  if not g.head or member < g.head then
    g.head = member
    group.touch(g)
  elseif not g.touched then
    enlist(g) -- behind the head: nothing but the zset changes
  end
end

-- Give up a member that this call has put; false if it has not.
local function take_back(g, member)
  local added = g.added or NONE
  for i = 2, #added, 2 do
    if added[i] == member then
      table.remove(added, i)
      table.remove(added, i - 1)
      return true
    end
  end
  return false
end

function group.drop(g, member)
  if not (g.added and take_back(g, member)) then
    local removed = g.removed
    if removed then
      removed[#removed + 1], removed[member] = member, true
    else
      g.removed = { member, [member] = true }
    end
  end
  if member == g.head then g.head = find_head(g) end
  if g.holds then group.release(g, record.id_of(member)) end
  group.touch(g)
end

-- Take the head out, to run it; `ahead` more may follow in this call. Returns the member.
function group.pop(g, ahead)
  local member = g.head
  if g.stored or g.added or g.removed then
    group.drop(g, member)
    return member
  end
  if ahead > 1 or g.holds then
    group.look_ahead(g, ahead + 1)
    group.drop(g, member)
    return member
  end
  -- One job and no more: the common case, without the book-keeping of the general one.
  local key = K.group .. g.id
  local stored = redis.call('ZRANGE', key, 0, 1)
  g.stored, g.known_all, g.pos = stored, not stored[2], 1
  if stored[1] == member then
    W.zrem_one(key, member)
    g.head, g.pos = stored[2] or false, 2
    group.touch(g)
  else
    group.drop(g, member)
  end
  return member
end

-- Forget what the stored value says of the head; for groups that cannot be trusted.
function group.reread(g)
  g.stored, g.pos, g.at = false, 1, 'unknown'
  g.head = find_head(g)
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

-- The one decision.
function group.refresh(g)
  g.stale = false
  if g.running >= g.limit then
    g.place = 'busy'
  elseif not g.head then
    g.place = 'idle'
  elseif g.paused then
    g.place = 'paused'
  else
    local hold = g.holds and g.holds[record.id_of(g.head)]
    if hold and hold > now then
      g.place, g.due = 'parked', hold
      horizon.note(hold)
    else
      g.place, g.score = 'ready', record.score(g.head)
    end
  end
end

local ready, unready = W.list('ZADD', K.ready), W.list('ZREM', K.ready)
local values = W.list('HSET', K.groups)

local function note_place(g, place, at)
  if place == 'ready' then
    if at ~= 'ready' or g.head ~= g.was_head then
      local n = #ready
      ready[n + 1], ready[n + 2] = W.whole(g.score), g.id
    end
  elseif at ~= 'none' then
    unready[#unready + 1] = g.id
  end
  if place == 'parked' then
    W.zadd(K.parked, W.whole(g.due), g.id)
  elseif at == 'unknown' then
    W.zrem(K.parked, g.id)
  end
end

local function note_value(g)
  local head, running, delayed = g.head, g.running, g.delayed
  local value
  if head then
    value = struct.pack('>I4I4I2', running, delayed, #head) .. head
  elseif running > 0 or delayed > 0 then
    value = struct.pack('>I4I4I2', running, delayed, 0)
  else
    if g.raw then W.hdel(K.groups, g.id) end
    return
  end
  if g.holds then value = value .. cmsgpack.pack(g.holds) end
  if value ~= g.raw then
    local n = #values
    values[n + 1], values[n + 2] = g.id, value
  end
end

-- Note what changed of all touched groups; true if one of them may start a job now. Once a call, at its end.
function group.settle()
  local any_ready, unseen, n = false, { K.wake }, 1
  for i = 1, #touched do
    local g = touched[i]
    if g.removed or g.added then
      local key = group.key(g)
      if g.removed then W.give('ZREM', key, g.removed) end
      local added = g.added
      if added and #added == 2 then
        W.zadd_one(key, added[2])
      elseif added then
        W.give('ZADD', key, added)
      end
      if not g.stored then
        n = n + 1
        unseen[n] = key
      end
    end
    if g.stale then group.refresh(g) end
    local place, at = g.place, g.at
    if place then
      note_place(g, place, at)
      note_value(g)
    end
    if place == 'ready' or (not place and at == 'ready') then any_ready = true end
  end
  -- Every key is looked at before the first write: one of a wrong type, or one that a resharding has moved away, must
  -- stop the call while nothing is written. One command for all; `wake` has at most one member, so it costs little.
  if n > 1 then redis.call('ZINTERCARD', n, unpack(unseen)) end
  return any_ready and not meta.paused
end
