--[[
The order of ready groups in `ready`, smallest score first: by the priority of the head, then by its arrival
(lib/record.lua; with the rule `ageing` by how long it has waited), or, with the rule `round_robin`, by a ticket: a
number that the group draws when it becomes ready.
]]
--- @include "lib/keys"
--- @include "lib/meta"
--- @include "lib/record"
local line = {}
--- @private

-- The score with round robin: a group that becomes ready, or has just started a job, draws a new ticket and sorts
-- behind all groups of its priority. The jobs without a group draw no ticket and sort by arrival.
local function by_ticket(g)
  if g.id == '' then return record.score(g.head) end
  if not g.ticket then
    local stored = not g.started and g.at ~= 'none' and redis.call('ZSCORE', K.ready, g.id)
    local ticket = stored and record.ticket_of(tonumber(stored))
    -- A number that was never drawn is not a ticket: it was stored while the queue had another order.
    g.ticket = ticket and ticket > 0 and ticket <= meta.seq and ticket or meta.next_seq()
  end
  return record.score(g.head, g.ticket)
end

function line.score(g)
  if rules.round_robin then return by_ticket(g) end
  return record.score(g.head)
end
