--[[
Read entries of the event log (lib/events.lua).

Arguments  `since` and `count`, or `last`
  since       a stream id; with `(` in front, only later entries
  count       how many entries, at most
  last        true = only the last entry
Reply      the entries: {stream id, {field, value, ...}}
Events     none
Cost       O(count), one command
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @plain no-writes
if A.last then return redis.call('XREVRANGE', K.events, '+', '-', 'COUNT', 1) end
return redis.call('XRANGE', K.events, A.since, '+', 'COUNT', A.count)
