--[[
One group.

Arguments  group
Reply      {place, waiting, active, delayed, limit, paused, ms until its head may start or -1}
]]
--- @include "lib/group"
local g = group.get(A.group)
group.refresh(g)
if g.place == 'busy' then g.place = (not g.head and 'idle') or (g.paused and 'paused') or 'busy' end
return {
  g.place, redis.call('ZCARD', group.key(g)), g.running, g.delayed, g.limit == math.huge and -1 or g.limit,
  g.paused and 1 or 0, g.due and g.due - now or -1,
}
