--[[
Counters since the queue was created, presence of workers, and the newest failed attempts.

Arguments  failures (how many)
Reply      {now, {processed, failed, retried, stalled, lost, limited}, workers (id, presence ...), failures}
]]
--- @include "lib/meta"
local counters = redis.call('HMGET', K.meta, 'processed', 'failed', 'retried', 'stalled', 'lost', 'limited')
for i = 1, #counters do counters[i] = tonumber(counters[i]) or 0 end
local failures = A.failures > 0 and redis.call('LRANGE', K.failures, 0, A.failures - 1) or {}
return { now, counters, redis.call('HGETALL', K.workers), failures }
