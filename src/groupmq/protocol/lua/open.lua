--[[
Open a queue: store its settings if it is new, and return the stored ones.

Arguments
  schema      version of the stored format
  config      the settings, as text
  limit       group_concurrency
  rules       lib/meta.lua
  replace     true = store these settings even if others are stored
Reply      {schema, config} as stored now
Events     none
Cost       O(1): at most 8 commands
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/numbers"
--- @plain
local stored = redis.call('HMGET', K.meta, 'schema', 'config')
if stored[1] and not A.replace then return stored end
local raw = redis.call('HGET', K.meta, 'numbers')
local found = numbers.of_new_queue(A.limit)
if numbers.is_ours(raw) then numbers.read(found, raw) end
found.limit, found.throttled = A.limit, 0
redis.call('HSET', K.meta, 'schema', A.schema, 'config', A.config, 'numbers', numbers.pack(found))
local turn = redis.call('HGET', K.meta, 'turn')
if turn and not A.rules.exclusive then
  redis.call('HDEL', K.meta, 'turn')
  redis.call('UNLINK', K.hail .. cmsgpack.unpack(turn)[1])
end
if A.rules.rate then redis.call('LTRIM', K.starts, 0, A.rules.rate[1] - 1) else redis.call('UNLINK', K.starts) end
if next(A.rules) then
  redis.call('HSET', K.meta, 'rules', cmsgpack.pack(A.rules))
else
  redis.call('HDEL', K.meta, 'rules')
end
return { A.schema, A.config }
