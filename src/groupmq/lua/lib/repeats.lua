--[[
Repeating jobs. A definition is one value in `repeats`: 4 bytes of length, a msgpack map, then the body its jobs get
(lib/record.lua after `created`). The map: group, key, priority, ttl (ms or absent), next, last (ms, 0 = never), count,
and `plan`, which only the client reads: when it ticks is its to compute (time zones do not fit in here).

`ticks` has the next tick of each, and `repeat_at` in `meta` the first of them all.
]]
--- @include "lib/arrival"
local repeats = {}
--- @private
local noted = {} -- next ticks as this call leaves them, false = none

function repeats.unpack(raw)
  local size = struct.unpack('>I4', raw)
  return cmsgpack.unpack(string.sub(raw, 5, 4 + size)), string.sub(raw, 5 + size)
end

-- A value of ours, whole and with all that a tick needs.
function repeats.is_sound(raw)
  if #raw < 4 or #raw < 4 + struct.unpack('>I4', raw) then return false end
  local read, definition = pcall(repeats.unpack, raw)
  return read and type(definition) == 'table' and type(definition.next) == 'number' and definition.next > 0
    and type(definition.group) == 'string' and type(definition.count) == 'number'
end

function repeats.save(rid, definition, body)
  local packed = cmsgpack.pack(definition)
  W.hset(K.repeats, rid, struct.pack('>I4', #packed) .. packed .. body)
  W.zadd(K.ticks, W.whole(definition.next), rid)
  noted[rid] = definition.next
end

function repeats.remove(rid)
  W.hdel(K.repeats, rid)
  W.zrem(K.ticks, rid)
  noted[rid] = false
end

-- One occurrence: a job like any other, ordered by its tick, which its id names: a tick is never run twice.
function repeats.enter(rid, definition, body, tick)
  local id = rid .. ':' .. W.whole(tick)
  definition.last, definition.count = tick, definition.count + 1
  if redis.call('HEXISTS', K.jobs, id) == 1 then return end
  local g = group.get(definition.group)
  arrival.enter(g, id, definition.priority, 0, record.order(tick), definition.ttl, body)
end

-- The first of all ticks, this call's changes applied, nil = none.
function repeats.settle()
  local first
  for _, time in pairs(noted) do
    if time and (not first or time < first) then first = time end
  end
  local at, stored = 0, nil
  repeat -- the first that this call has not changed
    stored = redis.call('ZRANGE', K.ticks, at, at, 'WITHSCORES')
    at = at + 1
  until not stored[1] or noted[stored[1]] == nil
  local other = tonumber(stored[2] or nil)
  if other and (not first or other < first) then first = other end
  if first then W.hset(K.meta, 'repeat_at', W.whole(first)) else W.hdel(K.meta, 'repeat_at') end
  return first
end
