--[[
Deduplication: several adds that stand for one job. An add brings {kind, key, ms}. Each group, kind and key has one
entry: the time at which it ends (6 bytes, ms) .. arrival of the job (6) .. its id:

  throttle  within `ms` of the first add, further adds add nothing and get the id of the first job
  debounce  while the job is still delayed, a further add replaces it and restarts the delay

An entry outlives its job (a throttle continues after the job is done) and ends only by time.
]]
--- @include "lib/call"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/whole"
--- @include "lib/meta"
--- @include "lib/writes"
--- @include "lib/record"
local dedupe = {}
--- @private
local THROTTLE = 1
local KIND, KEY, MS = 1, 2, 3

-- Field -> entry, with the changes of this call.
local function entries()
  call.dedupe = call.dedupe or {}
  return call.dedupe
end

local function field(gid, d) return d[KIND] .. struct.pack('>I2', #gid) .. gid .. d[KEY] end

local function entry(name)
  local known = entries()
  if known[name] == nil then
    local raw = redis.call('HGET', K.dedupe, name)
    if raw then
      local ends, seq = struct.unpack('>I6I6', raw)
      known[name] = { ends = ends, seq = seq, id = string.sub(raw, 13) }
    else
      known[name] = false
    end
  end
  return known[name]
end

-- When the job of the entry was made, if it is still delayed, else nil or false. The arrival is compared: another job
-- may have its id now.
local function made_at(e)
  if e.fresh then return e.made end
  local rec = redis.call('HGET', K.jobs, e.id)
  local same = rec and record.seq_of(rec) == e.seq and redis.call('ZSCORE', K.delayed, e.id)
  e.made = same and record.created_of(rec)
  return e.made
end

-- Returns three values: the id of the job that already stands for this add, or nil; its creation time if this add may
-- replace it, else false; its creation time in any case, even if it no longer exists. For a throttle, the last one is
-- computed from the end of the entry, which is exact if the first add had the same `ms`.
function dedupe.find(gid, d)
  local e = entry(field(gid, d))
  if not e or e.ends <= now then return nil end
  if d[KIND] == THROTTLE then return e.id, false, e.ends - d[MS] end
  local made = made_at(e)
  if made then return e.id, made, made end
end

-- Let job `id`, which arrived last and was made at `made`, stand for the key from now on.
function dedupe.enter(gid, d, id, made)
  local name, ends = field(gid, d), now + d[MS]
  entries()[name] = { id = id, ends = ends, seq = meta.seq, made = made, fresh = true }
  W.hset(K.dedupe, name, struct.pack('>I6I6', ends, meta.seq) .. id)
  W.zadd(K.deduped, whole(ends), name)
end

function dedupe.sweep(limit)
  local old = redis.call('ZRANGE', K.deduped, '-inf', whole(now), 'BYSCORE', 'LIMIT', 0, limit)
  for i = 1, #old do
    W.zrem(K.deduped, old[i])
    W.hdel(K.dedupe, old[i])
  end
  return #old
end
