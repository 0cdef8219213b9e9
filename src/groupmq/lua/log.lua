--[[
Entries of the log of events (lib/events.lua).

Arguments  since (a stream id; `(` in front = after it), count; or last (true: only the last entry)
Reply      the entries: {stream id, {field, value, ...}}
]]
--- @include "lib/keys"
--- @include "lib/args"
if A.last then return redis.call('XREVRANGE', K.events, '+', '-', 'COUNT', 1) end
return redis.call('XRANGE', K.events, A.since, '+', 'COUNT', A.count)
