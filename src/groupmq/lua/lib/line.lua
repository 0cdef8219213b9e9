--[[
The line of ready groups: where each stands among the others, smallest first. By its head's priority, then by arrival
(lib/record.lua; or by how long it waits, where that counts), or by the turn it has.
]]
--- @include "lib/meta"
--- @include "lib/record"
local line = {}
--- @private

function line.score(g) return record.score(g.head) end

-- Groups take turns: whoever becomes ready, or has just been served, goes to the end of the line of its priority.
-- Jobs without a group are a line of their own and stand where they arrived.
if rules.round_robin then
  function line.score(g)
    if g.id == '' then return record.score(g.head) end
    if not g.turn then
      local stored = not g.started and g.at ~= 'none' and redis.call('ZSCORE', K.ready, g.id)
      local turn = stored and record.turn_of(tonumber(stored))
      -- A number that was never given is of another order, which the queue had before.
      g.turn = turn and turn > 0 and turn <= meta.seq and turn or meta.next_seq()
    end
    return record.score(g.head, g.turn)
  end
end
