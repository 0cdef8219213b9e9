--[[
Read the position of a job among the waiting jobs of its group.

Arguments
  id          job id
Reply      {} = no such job, or {state, group ('' = none), its position (1 = starts first, 0 = it is not waiting),
            how many jobs of its group wait}
Events     none
Cost       O(log(waiting jobs of its group)): 9 commands
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/record"
--- @include "lib/group"
--- @include "lib/waiting"
--- @reads
local rec = redis.call('HGET', K.jobs, A.id)
if not rec then return {} end
local gid = record.group_of(rec)
local g, state_now = group.get(gid), 'waiting'
if redis.call('HEXISTS', K.leases, A.id) == 1 then state_now = 'active' end
for _, name in ipairs({ 'delayed', 'completed', 'failed' }) do
  if redis.call('ZSCORE', K[name], A.id) then state_now = name end
end
local rank = state_now == 'waiting' and waiting.rank(g, record.member(A.id, rec))
return { state_now, gid, rank and rank + 1 or 0, waiting.count(g) }
