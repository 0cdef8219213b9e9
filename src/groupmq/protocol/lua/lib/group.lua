--[[
Groups as this call sees them: loaded in bulk, changed in memory, written once at the end.

Code that changes a group calls `group.touch`; at the end of the call lib/group_changes.lua decides the states
(lib/group_state.lua) of all touched groups and notes what has changed.

lib/group_value.lua describes how a group is stored.
Jobs without a group share the group '', of which any number may run at once and which is not counted among the groups.
]]
--- @include "lib/call"
--- @include "lib/keys"
--- @include "lib/seen"
--- @include "lib/meta"
--- @include "lib/gate"
--- @include "lib/group_value"
local group = {}
--- @private
local NONE = {}

-- Record in the group that it has been blocked since `since`. Whatever its value says, it has no entry in `ready`.
local function block(g, since)
  g.blocked = since
  if g.at == 'ready' then g.at = 'none' end
end

-- Read how many attempts of the group have failed in a row (lib/breaker_changes.lua). Whether its rest is over is not
-- known here.
local function read_breaker(g, raw)
  if #raw ~= 10 then return end -- damaged: no breaker until repair has deleted it
  local failures, till = struct.unpack('>I4I6', raw)
  g.failures = failures
  if till > 0 then
    g.opened, g.gated = till, true
    if g.at == 'ready' then g.at = 'unknown' end
  end
end

-- Build the groups `gids` from their stored values and the other data that is stored about them, into a table by group
-- id. `gated`: as in group_value.read.
function group.build(into, gids, values, gated)
  local conf = meta.overrides and redis.call('HMGET', K.conf, unpack(gids)) or NONE
  local since = meta.blocks and redis.call('ZMSCORE', K.blocked, unpack(gids)) or NONE
  local failing = rules.breaker and meta.breakers and redis.call('HMGET', K.breakers, unpack(gids)) or NONE
  for i = 1, #gids do
    local g = group_value.read(gids[i], values[i], conf[i], gated)
    if failing[i] then read_breaker(g, failing[i]) end
    if since[i] then block(g, tonumber(since[i])) end
    into[gids[i]] = g
  end
end

-- Load the groups `gids`, which may contain duplicates, with one command.
function group.load(gids)
  local loaded, missing, n = call.loaded, {}, 0
  for i = 1, #gids do
    local gid = gids[i]
    if loaded[gid] == nil then
      loaded[gid] = false
      n = n + 1
      missing[n] = gid
    end
  end
  if n == 0 then return end
  seen.add(K.groups)
  group.build(loaded, missing, redis.call('HMGET', K.groups, unpack(missing)), gate.is_everywhere())
end

function group.get(gid)
  local g = call.loaded[gid]
  if not g then
    group.load({ gid })
    g = call.loaded[gid]
  end
  return g
end

function group.key(g) return K.group .. g.id end

-- Record that this call has changed the group, so that lib/group_changes.lua notes its changes.
function group.enlist(g)
  g.touched = true
  local touched = call.touched
  touched[#touched + 1] = g
end

-- Record a change that may change the state of the group: its head, its counts, a hold, an operator's setting.
function group.touch(g)
  g.stale = true
  if not g.touched then group.enlist(g) end
end

function group.is_touched(gid)
  local g = call.loaded[gid]
  return g and g.touched
end

-- Hold the group: job `id` must not start before `time`, and no job of the group starts while it is the head.
-- `snoozed`: the handler of the job asked for that, and no attempt has failed.
function group.hold(g, id, time, snoozed)
  g.holds = g.holds or {}
  g.holds[id], g.gated = time, true
  if snoozed then
    g.snoozed = g.snoozed or {}
    g.snoozed[id] = true
  end
  group.touch(g)
end

function group.release(g, id)
  if g.holds and g.holds[id] then
    g.holds[id] = nil
    if next(g.holds) == nil then g.holds = nil end
    if g.snoozed then
      g.snoozed[id] = nil
      if next(g.snoozed) == nil then g.snoozed = nil end
    end
    group.touch(g)
    return true
  end
  return false
end

-- Let the group rest: none of its jobs starts before `time`, whichever is the head.
function group.rest(g, time)
  g.rest, g.gated = math.max(g.rest or 0, time), true
  group.touch(g)
end

-- Give a slot of the group to a job that was taken.
function group.start(g)
  g.running = g.running + 1
  if g.gated or rules.round_robin then g.ticket, g.started = nil, (g.started or 0) + 1 end
end

-- Free the slots of `n` runs.
function group.free(g, n)
  local running = g.running - n
  g.running = running > 0 and running or 0
  group.touch(g)
end
