--[[
Add N jobs. A job whose id exists adds nothing: the first data wins, and resending a call is harmless.

Arguments  items, flat, 7 fields each: id, group ('' = none), priority, delay (ms, 0 = none), run_at (epoch ms,
           0 = none), bytes of order in the blob (0 or 8), bytes of body in the blob;
           repeats (true if an id occurs more than once among them)
Blob       per item its order, if any, and its body (lib/record.lua after `created`)
Reply      {now, order given to jobs that brought none, positions (from 1) of the duplicates}
Cost       O(N): 2 commands a group, about 10 a call
]]
--- @include "lib/finish"
--- @include "lib/settle"
--- @include "lib/wake"
local FIELDS = 7
local items, blob = A.items, ARGV[2]
local ids, gids = {}, {}
for i = 1, #items, FIELDS do
  ids[#ids + 1], gids[#gids + 1] = items[i], items[i + 1]
end
local existing = redis.call('HMGET', K.jobs, unpack(ids))
local earliest = redis.call('ZRANGE', K.delayed, 0, 0, 'WITHSCORES')[2]
group.load(gids)

local at, duplicates, default_order = 1, {}, meta.next_order()
local order_now = record.order(default_order)
local seen, stored = A.repeats and {}, W.list('HSET', K.jobs)
for i = 1, #ids do
  local f = (i - 1) * FIELDS
  local id, priority, delay, run_at = ids[i], items[f + 3], items[f + 4], items[f + 5]
  local order_size, body_size = items[f + 6], items[f + 7]
  local given = order_size > 0 and string.sub(blob, at, at + order_size - 1)
  local body = string.sub(blob, at + order_size, at + order_size + body_size - 1)
  at = at + order_size + body_size
  if existing[i] or (seen and seen[id]) then
    duplicates[#duplicates + 1] = i
  else
    if seen then seen[id] = true end
    local due_at = delay > 0 and now + delay or run_at
    local later = due_at > now
    local order = given or (later and record.order(due_at)) or order_now
    local rec = record.build(priority, order, meta.next_seq(), now, body)
    stored[#stored + 1] = id
    stored[#stored + 1] = rec
    if later then
      finish.delay(id, rec, due_at)
    else
      members.put(group.get(gids[i]), record.member(id, rec))
    end
  end
end

local sooner = horizon.at and (not earliest or horizon.at < tonumber(earliest))
if settle.groups() or (sooner and not meta.paused) then wake.up() end
W.commit(true)
return { now, default_order, duplicates }
