--[[
Read the position of a job among the waiting jobs of its group.

Arguments
  id          job id
Reply      {} = no such job, or {state, group ('' = none), its position (1 = starts first, 0 = it is not waiting),
            how many jobs of its group wait}
Events     none
Cost       O(log(waiting jobs of its group)): at most 12 commands
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/record"
--- @include "lib/group"
--- @include "lib/lease"
--- @include "lib/find"
--- @include "lib/waiting"
--- @reads
local rec = redis.call('HGET', K.jobs, A.id)
if not rec then return {} end
local gid = record.group_of(rec)
local g, state_now = group.get(gid), find.state(A.id, lease.load({ A.id })[1])
local rank = state_now == 'waiting' and waiting.rank(g, record.member(A.id, rec))
return { state_now, gid, rank and rank + 1 or 0, waiting.count(g) }
