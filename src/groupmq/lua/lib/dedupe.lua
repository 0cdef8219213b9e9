--[[
Adds that stand for one job: {kind, key, ms}. Per group, kind and key one entry, the time it ends
(6 bytes, ms) .. arrival of the job (6) .. its id:

  throttle  within the ttl of the first add, further ones add nothing and are told the id of the first
  debounce  while the job is still delayed, a further add replaces what it brings and starts the delay anew

An entry outlives its job (a throttle goes on when the job is done), and ends by time alone.
]]
--- @include "lib/meta"
--- @include "lib/record"
local dedupe = {}
--- @private
local THROTTLE = 1
local KIND, KEY, MS = 1, 2, 3
local entries = {} -- as this call leaves them

local function field(gid, d) return d[KIND] .. struct.pack('>I2', #gid) .. gid .. d[KEY] end

local function entry(name)
  if entries[name] == nil then
    local raw = redis.call('HGET', K.dedupe, name)
    if raw then
      local ends, seq = struct.unpack('>I6I6', raw)
      entries[name] = { ends = ends, seq = seq, id = string.sub(raw, 13) }
    else
      entries[name] = false
    end
  end
  return entries[name]
end

-- When the job of the entry was made, if that very job, not another that got its id since, still waits for its time.
local function made_at(e)
  if e.fresh then return e.made end
  local rec = redis.call('HGET', K.jobs, e.id)
  local same = rec and record.seq_of(rec) == e.seq and redis.call('ZSCORE', K.delayed, e.id)
  e.made = same and record.created_of(rec)
  return e.made
end

-- The id of the job that stands for this add already, or nil. If it may be replaced, also when it was made.
function dedupe.find(gid, d)
  local e = entry(field(gid, d))
  if not e or e.ends <= now then return nil end
  if d[KIND] == THROTTLE then return e.id, false end
  local made = made_at(e)
  if made then return e.id, made end
end

-- From now on `id`, the job that arrived last and was made at that time, stands for the key.
function dedupe.note(gid, d, id, made)
  redis.call('ZCARD', K.deduped) -- a key of a wrong type must stop the call before it writes
  local name, ends = field(gid, d), now + d[MS]
  entries[name] = { id = id, ends = ends, seq = meta.seq, made = made, fresh = true }
  W.hset(K.dedupe, name, struct.pack('>I6I6', ends, meta.seq) .. id)
  W.zadd(K.deduped, W.whole(ends), name)
end

function dedupe.sweep(limit)
  local old = redis.call('ZRANGE', K.deduped, '-inf', W.whole(now), 'BYSCORE', 'LIMIT', 0, limit)
  for i = 1, #old do
    W.zrem(K.deduped, old[i])
    W.hdel(K.dedupe, old[i])
  end
  return #old
end
