--[[
Open a queue: store its settings if it is new, and tell what is stored.

Arguments  schema, config (text), limit (group_concurrency), rules (lib/meta.lua),
           replace (true: store these settings whatever was there), only_look (true: store nothing)
Reply      {schema, config} as stored now, false if there is nothing
]]
--- @include "lib/keys"
--- @include "lib/args"
local stored = redis.call('HMGET', K.meta, 'schema', 'config')
if A.only_look or (stored[1] and not A.replace) then return stored end
redis.call('HSET', K.meta, 'schema', A.schema, 'config', A.config, 'limit', A.limit)
local turn = redis.call('HGET', K.meta, 'turn')
if turn and not A.rules.exclusive then
  redis.call('HDEL', K.meta, 'turn')
  redis.call('UNLINK', K.hail .. cmsgpack.unpack(turn)[1])
end
redis.call('HDEL', K.meta, 'throttled')
if A.rules.rate then redis.call('LTRIM', K.starts, 0, A.rules.rate[1] - 1) else redis.call('UNLINK', K.starts) end
if next(A.rules) then
  redis.call('HSET', K.meta, 'rules', cmsgpack.pack(A.rules))
else
  redis.call('HDEL', K.meta, 'rules')
end
return { A.schema, A.config }
