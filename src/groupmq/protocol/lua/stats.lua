--[[
Read the counters since the queue was created, the presence of workers, the newest failed attempts, and how long jobs
waited and ran.

Arguments
  failures    how many failed attempts
Reply      {now, measures as stored (lib/measure_value.lua) or false, workers, flat: id, presence ..., failed attempts,
            {wait, run} of all minutes that are over, as stored (lib/minutes.lua) or false,
            {ready groups, parked groups, groups with settings of their own, blocked groups,
             since when the first of these is blocked, 0 = none is,
             groups whose breaker is open, since when the first of these is, 0 = none is}}
Events     none
Cost       O(workers + failures): at most 12 commands
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/meta"
-- How many groups an index lists. The jobs without a group have one entry in it, with the id '', which does not count.
local function groups_in(index)
  return redis.call('ZCARD', K[index]) - (redis.call('ZSCORE', K[index], '') and 1 or 0)
end

-- How many groups `key` has, and the time of the first; both 0 if there is none.
local function since(key)
  local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
  return redis.call('ZCARD', key), tonumber(first[2] or 0)
end

--- @reads
local blocked, blocked_since = since(K.blocked)
local opened, opened_since = 0, 0
if rules.breaker then opened, opened_since = since(K.opened) end
local failures = A.failures > 0 and redis.call('LRANGE', K.failures, 0, A.failures - 1) or {}

return {
  now, meta.measures, redis.call('HGETALL', K.workers), failures, redis.call('HMGET', K.series, 'wait', 'run'),
  {
    groups_in('ready'), groups_in('parked'), redis.call('HLEN', K.conf), blocked, blocked_since, opened, opened_since,
  },
}
