--[[
Open a queue: store its settings if it is new, and return the stored ones. With `was`, replace them, but only if they
are still as the caller read them, so that two callers that change different settings at once lose neither change.

Arguments
  schema       version of the stored format
  config       the settings that the scripts act on, as text
  handling     the settings by which processes handle jobs, as text
  concurrency  group_concurrency
  rules        lib/meta.lua
  was          {config, handling ('' = none)} as read, to replace; absent = only a new queue is written
  revision     of a partition: the revision to store, that of its queue or 0 (protocol/commands/operating.py);
               absent = a new one
  instead      of a partition: its revision as read ('' = none), to replace. Never makes a partition: a process that
               changes the number of partitions may have removed it after the caller read the settings of the queue
Reply      {schema, config, handling, revision} as stored now
Events     none
Cost       O(1): at most 12 commands
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/numbers"
--- @include "lib/turn_value"

-- Make a revision. It differs from all earlier ones, including those of a removed queue of this name: a process that
-- knew the removed queue must not mistake the new one for it.
local function next_revision(last)
  local t = redis.call('TIME')
  return string.format('%.0f', math.max(t[1] * 1000000 + t[2], (tonumber(last) or 0) + 1))
end

-- End an offer (lib/offer.lua): it was made under the old settings, and no job may be granted under those.
local function end_offer(offer)
  if offer and string.sub(offer, 1, 1) == 'o' then redis.call('HDEL', K.meta, 'offer') end
end

--- @plain allow-oom
local stored = redis.call('HMGET', K.meta, 'schema', 'config', 'handling', 'revision')
if stored[1] and stored[1] ~= A.schema then return stored end
if A.instead and (not stored[1] or (stored[4] or '') ~= A.instead) then return stored end
if stored[1] and A.was and (stored[2] ~= A.was[1] or (stored[3] or '') ~= A.was[2]) then return stored end
local replaces = A.was or A.instead
if stored[3] and not replaces then return stored end
local revision = A.revision or next_revision(stored[4])
local offer, raw, raw_turn = unpack(redis.call('HMGET', K.meta, 'offer', 'numbers', 'turn'))
if stored[1] and (not replaces or stored[2] == A.config) then
  end_offer(offer)
  -- No script acts on `handling`. A queue of an early release has none stored: then the first process of a later
  -- release stores its own.
  redis.call('HSET', K.meta, 'handling', A.handling, 'revision', revision)
  return { stored[1], stored[2], A.handling, revision }
end
local found = numbers.of_new_queue(A.concurrency)
if numbers.is_ours(raw) then numbers.read(found, raw) end
found.concurrency, found.limited_until = A.concurrency, 0
local packed = next(A.rules) and cmsgpack.pack(A.rules)
-- A key of a wrong type must stop the call here, before it has written anything.
if A.rules.rate then redis.call('LLEN', K.starts) end
end_offer(offer)
if A.rules.silent then
  -- Only calls that write events trim the log, so it would stay forever.
  found.logged, found.log_bytes = 0, 0
  redis.call('UNLINK', K.events, K.segments)
end
redis.call(
  'HSET', K.meta, 'schema', A.schema, 'config', A.config, 'handling', A.handling, 'revision', revision,
  'numbers', numbers.pack(found)
)
if raw_turn and not A.rules.exclusive then
  local turn = turn_value.read(raw_turn)
  redis.call('HDEL', K.meta, 'turn')
  if turn then redis.call('UNLINK', K.wake_of .. turn[1]) end
end
if A.rules.rate then redis.call('LTRIM', K.starts, 0, A.rules.rate[1] - 1) else redis.call('UNLINK', K.starts) end
if packed then redis.call('HSET', K.meta, 'rules', packed) else redis.call('HDEL', K.meta, 'rules') end
return { A.schema, A.config, A.handling, revision }
