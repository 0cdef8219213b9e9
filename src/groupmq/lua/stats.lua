--[[
Counters since the queue was created, presence of workers, the newest failed attempts, how long jobs waited and ran, and
how long the head of the first ready group has been waiting.

Arguments  failures (how many)
Reply      {now, {processed, failed, retried, stalled, lost, limited, lease_lost}, workers (id, presence ...), failures,
            {wait, run: as stored, or false}, ms the oldest has waited or -1,
            {groups that may start a job, groups whose head has to wait, groups with settings of their own}}
]]
--- @include "lib/group"
local counters = redis.call(
  'HMGET', K.meta, 'processed', 'failed', 'retried', 'stalled', 'lost', 'limited', 'lease_lost'
)
for i = 1, #counters do counters[i] = tonumber(counters[i]) or 0 end
local failures = A.failures > 0 and redis.call('LRANGE', K.failures, 0, A.failures - 1) or {}

local oldest, first = -1, redis.call('ZRANGE', K.ready, 0, 0)[1]
local head = first and group.get(first).head
local rec = head and redis.call('HGET', K.jobs, record.id_of(head))
if rec then oldest = math.max(0, now - record.waits_since(rec)) end
-- Jobs without a group stand in the line as one; that is no group.
local function groups_in(place)
  return redis.call('ZCARD', K[place]) - (redis.call('ZSCORE', K[place], '') and 1 or 0)
end

return {
  now, counters, redis.call('HGETALL', K.workers), failures, redis.call('HMGET', K.series, 'wait', 'run'), oldest,
  { groups_in('ready'), groups_in('parked'), redis.call('HLEN', K.conf) },
}
