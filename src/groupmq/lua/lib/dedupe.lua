--[[
Adds that stand for one job: {kind, key, ms}. Per group and key one entry, the time it ends (6 bytes, ms) .. job id:

  throttle  within the ttl of the first add, further ones add nothing and are told the id of the first
  debounce  while the job is still delayed, a further add replaces what it brings and starts the delay anew

An entry outlives its job (a throttle goes on when the job is done), and ends by time alone.
]]
--- @include "lib/meta"
local dedupe = {}
--- @private
local THROTTLE = 1
local KIND, KEY, MS = 1, 2, 3
local entries = {} -- as this call leaves them

local function field(gid, key) return struct.pack('>I2', #gid) .. gid .. key end

local function entry(name)
  if entries[name] == nil then
    local raw = redis.call('HGET', K.dedupe, name)
    entries[name] = raw and { id = string.sub(raw, 7), ends = (struct.unpack('>I6', raw)) } or false
  end
  return entries[name]
end

-- The id of the job that stands for this add already, or nil. Whether it may be replaced is the second answer.
function dedupe.find(gid, d)
  local e = entry(field(gid, d[KEY]))
  if not e or e.ends <= now then return nil end
  if d[KIND] == THROTTLE then return e.id, false end
  if e.fresh or redis.call('ZSCORE', K.delayed, e.id) then return e.id, true end
end

function dedupe.note(gid, d, id)
  local name = field(gid, d[KEY])
  entries[name] = { id = id, ends = now + d[MS], fresh = true }
  W.hset(K.dedupe, name, struct.pack('>I6', now + d[MS]) .. id)
  W.zadd(K.deduped, W.whole(now + d[MS]), name)
end

function dedupe.sweep(limit)
  local old = redis.call('ZRANGE', K.deduped, '-inf', W.whole(now), 'BYSCORE', 'LIMIT', 0, limit)
  for i = 1, #old do
    W.zrem(K.deduped, old[i])
    W.hdel(K.dedupe, old[i])
  end
  return #old
end
