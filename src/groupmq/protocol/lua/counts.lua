--[[
Count the jobs in each state. The number of waiting jobs is not stored: it is the number of all jobs minus those in
the other states, so no counter can drift.

Arguments  none
Reply      {active, waiting, delayed, completed, failed, groups, 1 if paused, ready groups, parked groups, workers,
            blocked groups}
Events     none
Cost       O(1): 11 commands
]]
--- @include "lib/keys"
--- @include "lib/meta"
--- @reads
local active, delayed = redis.call('ZCARD', K.active), redis.call('ZCARD', K.delayed)
local completed, failed = redis.call('ZCARD', K.completed), redis.call('ZCARD', K.failed)
local waiting = redis.call('HLEN', K.jobs) - active - delayed - completed - failed
local groups = redis.call('HLEN', K.groups) - redis.call('HEXISTS', K.groups, '')
return {
  active, waiting, delayed, completed, failed, groups, meta.paused and 1 or 0,
  redis.call('ZCARD', K.ready), redis.call('ZCARD', K.parked), redis.call('HLEN', K.workers),
  redis.call('ZCARD', K.blocked),
}
