--[[
Find the head that has waited longest among many groups while reading few records, because a record may contain the data
of its job. A head that brought its own order has waited since its arrival; any other since its order, which is the time
at which it arrived or became due. Its member has both numbers, but does not show which of them counts. So the TOP heads
by arrival and the TOP heads by order are read, which is exact if all jobs of the queue bring an order, or none does.
]]
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/record"
local oldest = {}
--- @private
local TOP = 4

function oldest.new() return { seq = {}, order = {} } end

-- Insert the head into a list of the TOP heads with the smallest `by`, if it is one of them.
local function insert(list, head, by)
  local at = #list
  if at == TOP then
    if head[by] >= list[TOP][by] then return end
    at = TOP - 1
  end
  while at > 0 and list[at][by] > head[by] do
    list[at + 1] = list[at]
    at = at - 1
  end
  list[at + 1] = head
end

function oldest.add(list, g, member)
  local head = { g = g, member = member, seq = record.seq_of(member), order = record.order_of(member) }
  insert(list.seq, head, 'seq')
  insert(list.order, head, 'order')
end

-- The head that has waited longest, with `ms` (how long) and `since`; nil if there is none.
function oldest.longest(list)
  local best
  for _, first in ipairs({ list.seq, list.order }) do
    for i = 1, #first do
      local head = first[i]
      local rec = not head.ms and redis.call('HGET', K.jobs, record.id_of(head.member))
      if rec then
        head.since = record.waits_since(rec)
        head.ms = math.max(0, now - head.since)
        if not best or head.since < best.since then best = head end
      end
    end
  end
  return best
end
