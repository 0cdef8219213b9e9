--[[
Add N jobs. A job whose id exists adds nothing: the first data wins, and resending a call is harmless.

Arguments  columns, a value per job: ids, groups ('' = none), sizes (bytes of its body in the blob);
           absent if it is the same for all: priorities (0), delays (ms, 0 = none), times (run at, epoch ms, 0 = none),
           ordered (true: 8 bytes of order stand before the body; false),
           extras (false, or {ttl (ms or false), dedupe (lib/dedupe.lua) or false});
           repeats (true if an id occurs more than once among them);
           whole (true: if a group is full, nothing of the call is written)
Blob       per item its order, if any, and its body (lib/record.lua after `created`)
Reply      {now, order given to jobs that brought none, positions (from 1) of the duplicates,
            positions and ids of those another job stands for, flat, positions of those whose group is full}
Cost       O(N): 2 commands a group, about 10 a call
]]
--- @include "lib/arrival"
--- @include "lib/dedupe"
--- @include "lib/settle"
--- @include "lib/wake"
local NONE = {}
local blob, ids, gids, sizes = ARGV[2], A.ids, A.groups, A.sizes
local priorities, delays, times = A.priorities or NONE, A.delays or NONE, A.times or NONE
local ordered, extras = A.ordered or NONE, A.extras or NONE
local existing = redis.call('HMGET', K.jobs, unpack(ids))
group.load(gids)

local at, duplicates, deduped, full = 1, {}, {}, {}
local seen = A.repeats and {}

-- True if the job of an earlier add stands for this one. While it waits for its debounce, it becomes this one.
local function stands_in(i, d, priority, due, order, ttl, body)
  local id, created = dedupe.find(gids[i], d)
  if not id then return false end
  if created then
    arrival.replace(id, created, priority, due, order, ttl, body)
    dedupe.note(gids[i], d, id, created)
  end
  deduped[#deduped + 1] = i
  deduped[#deduped + 1] = id
  return true
end

for i = 1, #ids do
  local id, priority, delay, due, order = ids[i], priorities[i] or 0, delays[i], times[i] or 0, false
  if ordered[i] then
    order = string.sub(blob, at, at + 7)
    at = at + 8
  end
  local body = string.sub(blob, at, at + sizes[i] - 1)
  at = at + sizes[i]
  if delay and delay > 0 then due = now + delay end
  local extra = extras[i] or NONE
  local ttl, d = extra[1], extra[2]
  if existing[i] or (seen and seen[id]) then
    duplicates[#duplicates + 1] = i
  elseif not (d and stands_in(i, d, priority, due, order, ttl, body)) then
    local g = group.get(gids[i])
    if arrival.fits(g) then
      if seen then seen[id] = true end
      arrival.enter(g, id, priority, due, order, ttl, body)
      if d then dedupe.note(gids[i], d, id, now) end
    else
      full[#full + 1] = i
    end
  end
end
if A.whole and #full > 0 then return { now, meta.order, {}, {}, full } end

-- Workers sleep until the next due time they know of: one that this call made, before all others, they must hear of.
-- All are looked at, whatever the first says: a key of a wrong type must stop the call before it writes.
local function is_news(time)
  local news = not meta.paused
  for _, key in ipairs({ K.delayed, K.parked, K.expiring }) do
    local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]
    if first and tonumber(first) <= time then news = false end
  end
  return news
end

local any_ready = settle.groups()
local news = horizon.at and is_news(horizon.at)
if any_ready or news then wake.up() end
W.commit(true)
return { now, meta.order, duplicates, deduped, full }
