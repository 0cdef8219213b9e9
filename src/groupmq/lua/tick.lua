--[[
The ticks of repeating jobs: for each, compare the tick that was expected, add its occurrences and store the next tick,
all at once. Of any number of schedulers exactly one finds what it expected; the others change nothing.

Arguments  ticks, per repeat: {id, expected tick, next tick (0 = it was the last), ticks to add ...}
Reply      {how many occurrences were added, ms until the next tick of any repeat or -1}
]]
--- @include "lib/repeats"
--- @include "lib/settle"
--- @include "lib/wake"
local rids, added = {}, 0
for i = 1, #A.ticks do rids[i] = A.ticks[i][1] end
local values = #rids > 0 and redis.call('HMGET', K.repeats, unpack(rids)) or {}
for i = 1, #rids do
  local t = A.ticks[i]
  if values[i] then
    local definition, body = repeats.unpack(values[i])
    if definition.next == t[2] then
      for k = 4, #t do repeats.enter(t[1], definition, body, t[k]) end
      added = added + #t - 3
      definition.next = t[3]
      if t[3] > 0 then repeats.save(t[1], definition, body) else repeats.remove(t[1]) end
    end
  end
end
local first = repeats.settle()
if settle.groups() or horizon.moved() then wake.up() end
W.commit(true)
return { added, first and math.max(0, first - now) or -1 }
