--[[
Read the state and the counts of one group.

Arguments
  group       group id
Reply      {state, waiting, active, delayed, concurrency (-1 = no limit), 1 if paused,
            ms until its head may start or -1}
Events     none
Cost       O(1): at most 7 commands
]]
--- @include "lib/args"
--- @include "lib/clock"
--- @include "lib/group"
--- @include "lib/group_state"
--- @include "lib/waiting"
--- @reads
local g = group.get(A.group)
group_state.refresh(g)
return {
  group_state.shown(g, g.state), waiting.count(g), g.running, g.delayed,
  g.concurrency == math.huge and -1 or g.concurrency, g.paused and 1 or 0, g.due and g.due - now or -1,
}
