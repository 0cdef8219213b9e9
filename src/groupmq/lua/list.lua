--[[
A page of job ids of one indexed state.

Arguments  kind ('active', 'delayed', 'completed', 'failed'), offset, limit, newest (true: last ones first)
Reply      ids
]]
--- @include "lib/meta"
if A.limit == 0 then return {} end
local stop = A.offset + A.limit - 1
if A.newest then return redis.call('ZRANGE', K[A.kind], A.offset, stop, 'REV') end
return redis.call('ZRANGE', K[A.kind], A.offset, stop)
