--[[
Run the ticks of repeating jobs. For each repeat the call compares the expected tick with the stored one, adds the
occurrences and stores the next tick. Exactly one of several schedulers finds the tick that it expects; the others
change nothing.

Arguments
  ticks       per repeat: {id, expected tick, next tick (0 = this was the last), ticks to add ...}
Reply      {how many occurrences were added, ms until the next tick of any repeat or -1}; repeats whose data has no room
           in this call are not changed, and stay due
Events     added
Cost       O(ticks to add): about 2 commands per repeat, at most 4 per occurrence, and some 10 per call
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/seen"
--- @include "lib/bodies"
--- @include "lib/repeats"
local ROOM = 1048576 -- bytes of large data; the first repeat may exceed it
--- @writes remembers
local rids, added, room = {}, 0, ROOM
for i = 1, #A.ticks do rids[i] = A.ticks[i][1] end
seen.add(K.repeats)
local values = #rids > 0 and redis.call('HMGET', K.repeats, unpack(rids)) or {}
for i = 1, #rids do
  local t = A.ticks[i]
  if values[i] then
    local definition, body = repeats.unpack(values[i])
    local size = #t > 3 and bodies.size(bodies.of_repeat(t[1])) or 0
    if definition.next == t[2] and (size <= room or room == ROOM) then
      room = room - size
      for k = 4, #t do
        if repeats.enter(t[1], definition, body, t[k]) then added = added + 1 end
      end
      definition.next = t[3]
      if t[3] > 0 then repeats.save(t[1], definition, body) else repeats.remove(t[1]) end
    end
  end
end
local first = repeats.set_first_tick()
return commit({ added, first and math.max(0, first - now) or -1 })
