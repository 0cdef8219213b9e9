--[[
How many jobs are in each state, in O(1). Waiting is what exists and is nowhere else, so no counter can drift.

Reply      {active, waiting, delayed, completed, failed, groups, paused, ready groups, parked groups, workers}
]]
--- @include "lib/meta"
local active, delayed = redis.call('ZCARD', K.active), redis.call('ZCARD', K.delayed)
local completed, failed = redis.call('ZCARD', K.completed), redis.call('ZCARD', K.failed)
local waiting = redis.call('HLEN', K.jobs) - active - delayed - completed - failed
local groups = redis.call('HLEN', K.groups) - redis.call('HEXISTS', K.groups, '')
return {
  active, waiting, delayed, completed, failed, groups, meta.paused and 1 or 0,
  redis.call('ZCARD', K.ready), redis.call('ZCARD', K.parked), redis.call('HLEN', K.workers),
}
