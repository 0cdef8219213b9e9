--[[
Repeating jobs. A definition is one value in `repeats`: 4 bytes of length, a msgpack map, then the body its jobs get
(lib/record.lua after `created`). The map: group, key, priority, ttl (ms or absent), next, last (ms, 0 = never), count,
`plan`, which only the client reads (it computes the ticks, because time zones are not available in Lua), and, if no
occurrence may be added while the previous one is live: overlap = 'skip', skipped (how many ticks were skipped).

Large data is in `bodies` instead (lib/bodies.lua), under a field that no job has; the map then has a digest of it in
`data`, so that the value changes with the data.

`ticks` has the next tick of each repeat, and `repeat_at` in `meta` the first of all.
]]
--- @include "lib/call"
--- @include "lib/keys"
--- @include "lib/whole"
--- @include "lib/meta"
--- @include "lib/record"
--- @include "lib/writes"
--- @include "lib/group"
--- @include "lib/bodies"
--- @include "lib/body_changes"
--- @include "transitions/enter"
local repeats = {}
--- @private

-- Remember the next tick of a repeat that this call has changed, false = none.
local function set_tick(rid, time)
  call.ticks = call.ticks or {}
  call.ticks[rid] = time
end

function repeats.unpack(raw)
  local size = struct.unpack('>I4', raw)
  return cmsgpack.unpack(string.sub(raw, 5, 4 + size)), string.sub(raw, 5 + size)
end

-- Whether the value is complete and has every field that a tick needs.
function repeats.is_sound(raw)
  if #raw < 4 or #raw < 4 + struct.unpack('>I4', raw) then return false end
  local read, definition = pcall(repeats.unpack, raw)
  return read and type(definition) == 'table' and type(definition.next) == 'number' and definition.next > 0
    and type(definition.group) == 'string' and type(definition.count) == 'number'
end

function repeats.save(rid, definition, body)
  local packed = cmsgpack.pack(definition)
  W.hset(K.repeats, rid, struct.pack('>I4', #packed) .. packed .. body)
  W.zadd(K.ticks, whole(definition.next), rid)
  set_tick(rid, definition.next)
end

-- The body that is stored with a definition: without its data, if that is large.
function repeats.body(rid, body, data) return body_changes.enter(bodies.of_repeat(rid), body, data, true) end

function repeats.remove(rid)
  body_changes.drop(bodies.of_repeat(rid))
  W.hdel(K.repeats, rid)
  W.zrem(K.ticks, rid)
  set_tick(rid, false)
end

-- The data of the jobs, with the changes of this call: nil if the body has it, false if it is lost.
function repeats.data(rid, body)
  if not record.is_beside(body, 3) then return nil end
  local field, read = bodies.of_repeat(rid), call.repeat_data or {}
  call.repeat_data = read
  if read[rid] == nil then read[rid] = call.bodies and call.bodies[field] or redis.call('HGET', K.bodies, field) end
  return read[rid]
end

local function id_of(rid, tick) return rid .. ':' .. whole(tick) end

-- Whether the last occurrence that was added, perhaps by this call, has not ended.
local function lives(rid, last)
  local id = id_of(rid, last)
  if call.entered and call.entered[id] then return true end
  if last == 0 or redis.call('HEXISTS', K.jobs, id) == 0 then return false end
  return not (redis.call('ZSCORE', K.completed, id) or redis.call('ZSCORE', K.failed, id))
end

-- Add one occurrence: a normal job, ordered by its tick. Its id contains the tick, so no tick is added twice. Returns
-- false if no job was added, because the previous occurrence is live or the data is lost.
function repeats.enter(rid, definition, body, tick)
  local id = id_of(rid, tick)
  if definition.overlap == 'skip' and lives(rid, definition.last) then
    definition.skipped = (definition.skipped or 0) + 1
    return false
  end
  local data = repeats.data(rid, body)
  if data == false then return false end
  definition.last, definition.count = tick, definition.count + 1
  if redis.call('HEXISTS', K.jobs, id) == 1 then return true end
  call.entered = call.entered or {}
  call.entered[id] = true
  local g = group.get(definition.group)
  enter_job(g, id, definition.priority, 0, record.order(tick), definition.ttl, body, data)
  return true
end

-- Set and return the first of all ticks with the changes of this call, nil = none.
function repeats.set_first_tick()
  local first, ticks = nil, call.ticks or {}
  for _, time in pairs(ticks) do
    if time and (not first or time < first) then first = time end
  end
  local at, stored = 0
  repeat -- the first that this call has not changed
    stored = redis.call('ZRANGE', K.ticks, at, at, 'WITHSCORES')
    at = at + 1
  until not stored[1] or ticks[stored[1]] == nil
  local other = tonumber(stored[2] or nil)
  if other and (not first or other < first) then first = other end
  meta.repeat_at = first
  return first
end
