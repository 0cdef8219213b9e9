--[[
Read the settings that a queue is stored with.

Arguments  none
Reply      {schema, config, handling, revision}, each false if it is not stored
Events     none
Cost       O(1), one command
]]
--- @include "lib/keys"
--- @plain no-writes
return redis.call('HMGET', K.meta, 'schema', 'config', 'handling', 'revision')
