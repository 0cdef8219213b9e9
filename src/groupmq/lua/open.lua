--[[
Open a queue: store its settings if it is new, and tell what is stored.

Arguments  schema, config (text), limit (group_concurrency), replace (true: store these settings whatever was there)
Reply      {schema, config} as stored now
]]
--- @include "lib/keys"
--- @include "lib/args"
local stored = redis.call('HMGET', K.meta, 'schema', 'config')
if stored[1] and not A.replace then return stored end
redis.call('HSET', K.meta, 'schema', A.schema, 'config', A.config, 'limit', A.limit)
return { A.schema, A.config }
