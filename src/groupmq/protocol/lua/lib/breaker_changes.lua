--[[
The breaker of a group: with the rule `breaker` = {failures, cooldown (ms)}, a group whose attempts have failed that
many times in a row rests for the cool-down. Then exactly one job starts, the probe, and nothing is prefetched behind
it. If it completes, the breaker is closed; if it fails, the group rests again. A run that ends in another way
(released, rate-limited, snoozed, cancelled) does not count: the next job is the probe. Jobs without a group have no
breaker.

  breakers  hash  group -> failed attempts in a row (4 bytes), until when the group rests (6 bytes, ms; 0 = closed)
  breaking  zset  group, by the time at which its failures are forgotten: FORGET cool-downs after the last one
  opened    zset  group whose breaker is open, by the time at which it opened: these groups are counted and listed
                  without reading the others

An entry outlives the jobs of its group, so that failures in a row count even if the group was empty between them.
`breakers` in `meta` is 1 while there may be entries. lib/group.lua reads them, lib/gate.lua makes groups wait.
]]
--- @include "lib/call"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/whole"
--- @include "lib/meta"
--- @include "lib/writes"
--- @include "lib/group"
local breaker_changes = {}
--- @private
local FAILURES, COOLDOWN = 1, 2
local FORGET = 10

-- The changes of this call: noted = groups that got an entry, dropped = how many entries were deleted.
local function changes()
  call.breakers = call.breakers or { noted = {}, dropped = 0 }
  return call.breakers
end

-- Count a failed attempt of a job of the group, and open the breaker if there were enough in a row.
function breaker_changes.failed(g)
  local rule = rules.breaker
  if not rule or g.id == '' then return end
  g.failures = (g.failures or 0) + 1
  if g.failures >= rule[FAILURES] then
    if not g.opened then W.zadd(K.opened, whole(now), g.id) end
    g.opened, g.gated = now + rule[COOLDOWN], true
  end
  W.hset(K.breakers, g.id, struct.pack('>I4I6', g.failures, g.opened or 0))
  W.zadd(K.breaking, whole(now + FORGET * rule[COOLDOWN]), g.id)
  changes().noted[g.id] = true
  meta.breakers = true
  group.touch(g)
end

-- Delete the entry of a group. Without the rule, this call has not read whether the breaker is open.
local function drop(g)
  W.hdel(K.breakers, g.id)
  W.zrem(K.breaking, g.id)
  if g.opened or not rules.breaker then W.zrem(K.opened, g.id) end
  changes().dropped = changes().dropped + 1
  g.failures, g.opened = nil, nil
  group.touch(g)
end

-- Forget the failures of a group, because a job of it has completed. Calls apply completed jobs before failed ones, so
-- no failure of this call is lost.
function breaker_changes.succeeded(g)
  if g.failures then drop(g) end
end

-- Forget old failures.
function breaker_changes.sweep(limit)
  if not meta.breakers then return 0 end
  local old = redis.call('ZRANGE', K.breaking, '-inf', whole(now), 'BYSCORE', 'LIMIT', 0, limit)
  for i = 1, #old do
    if not changes().noted[old[i]] then drop(group.get(old[i])) end
  end
  return #old
end

-- Clear `breakers` in `meta` if no entry is left. Runs at the end of the call.
function breaker_changes.note()
  local mine = call.breakers
  if mine.dropped == 0 or next(mine.noted) then return end
  if redis.call('ZCARD', K.breaking) <= mine.dropped then meta.breakers = false end
end
