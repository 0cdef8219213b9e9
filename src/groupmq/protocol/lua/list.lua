--[[
Read a page of the ids of jobs in one state that has an index.

Arguments
  kind        'active', 'delayed', 'completed' or 'failed'
  offset      rank of the first job
  limit       how many jobs, at most
  newest      true = the last ones first
Reply      job ids
Events     none
Cost       O(log(jobs) + limit), one command
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @reads
if A.limit == 0 then return {} end
local stop = A.offset + A.limit - 1
if A.newest then return redis.call('ZRANGE', K[A.kind], A.offset, stop, 'REV') end
return redis.call('ZRANGE', K[A.kind], A.offset, stop)
