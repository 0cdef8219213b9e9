--[[
What a monitor shows beside the counts: groups, runs and failed attempts, without the data of any job. Writes nothing.
Bounded, however deep the queue: a page of the groups and those asked for again, the first LEASES leases, as many
failures as asked for.

Arguments  cursor ('0' = start), again (ids of groups to look at as well), groups, runs, failures (how many to tell)
Reply      {now, next cursor ('0' = end), groups by waiting jobs, groups by how long their head has waited,
            runs, the longest first, failed attempts, the newest first, one a job}
  group    {id, place, waiting, active, delayed, ms its head has waited or -1, ms until its head may start or -1}
  run      {id, group, attempt, started, worker}
  failure  {id, attempt, error, time, 1 if the last, worker, state the job is in now, '' if it is gone}
]]
--- @include "lib/group"
--- @include "lib/lease"
local PAGE, LEASES, TEXT = 300, 500, 300

-- The first `n` of `list` by `before`, each through `tell`.
local function first(list, n, before, tell)
  table.sort(list, before)
  local told = {}
  for i = 1, math.min(n, #list) do told[i] = tell(list[i]) end
  return told
end

-- Those of this page, those asked for again, and those first in line.
local function candidates()
  local scan, gids, seen = redis.call('HSCAN', K.groups, A.cursor, 'COUNT', PAGE), {}, {}
  local function note(gid)
    if not seen[gid] then
      seen[gid] = true
      gids[#gids + 1] = gid
    end
  end
  for i = 1, #scan[2], 2 do note(scan[2][i]) end
  for _, gid in ipairs(A.again) do note(gid) end
  for _, gid in ipairs(redis.call('ZRANGE', K.ready, 0, A.groups - 1)) do note(gid) end
  return scan[1], gids
end

-- A member that arrived before another has waited longer, all but for what was delayed or brought an order of its own.
local function earlier(a, b)
  if a.seq ~= b.seq then return a.seq < b.seq end
  return a.g.id < b.g.id
end

local function larger(a, b)
  local n, m = a.waiting + a.g.running, b.waiting + b.g.running
  if n ~= m then return n > m end
  return a.g.id < b.g.id
end

local function told_group(found)
  local g, waited = found.g, -1
  if not g.place then group.refresh(g) end
  local rec = g.head and redis.call('HGET', K.jobs, record.id_of(g.head))
  if rec then waited = math.max(0, now - record.waits_since(rec)) end
  local place = g.place
  if place == 'busy' then place = (not g.head and 'idle') or (g.paused and 'paused') or 'busy' end
  return { g.id, place, found.waiting, g.running, g.delayed, waited, g.due and math.max(0, g.due - now) or -1 }
end

local function groups()
  local cursor, gids = candidates()
  local live, behind = {}, {}
  for from = 1, #gids, CHUNK do group.load({ unpack(gids, from, math.min(from + CHUNK - 1, #gids)) }) end
  for i = 1, #gids do
    local g = group.get(gids[i])
    if g.raw and g.running < math.huge then
      local found = { g = g, waiting = g.head and redis.call('ZCARD', group.key(g)) or 0 }
      if found.waiting + g.running > 0 then live[#live + 1] = found end
      if g.head then
        found.seq = record.seq_of(g.head)
        behind[#behind + 1] = found
      end
    end
  end
  local busiest = first(live, A.groups, larger, told_group)
  local late = first(behind, A.groups, earlier, told_group)
  for i = 1, #late do late[i] = { told = late[i], at = i } end
  local delayed = first(late, #late, function(a, b)
    if a.told[6] ~= b.told[6] then return a.told[6] > b.told[6] end
    return a.at < b.at
  end, function(one) return one.told end)
  return cursor, busiest, delayed
end

local function runs()
  local ids = redis.call('ZRANGE', K.active, 0, LEASES - 1)
  local found = {}
  for i, l in ipairs(lease.load(ids)) do
    if l then found[#found + 1] = { id = ids[i], l = l } end
  end
  return first(found, A.runs, function(a, b)
    if a.l.started ~= b.l.started then return a.l.started < b.l.started end
    return a.l.token < b.l.token
  end, function(run)
    return { run.id, run.l.gid, run.l.attempts + 1, run.l.started, lease.worker(run.l) }
  end)
end

local function state_now(id)
  if redis.call('HEXISTS', K.leases, id) == 1 then return 'active' end
  for _, name in ipairs({ 'failed', 'completed', 'delayed' }) do
    if redis.call('ZSCORE', K[name], id) then return name end
  end
  return redis.call('HEXISTS', K.jobs, id) == 1 and 'waiting' or ''
end

local function failures()
  local told, seen = {}, {}
  for _, raw in ipairs(A.failures > 0 and redis.call('LRANGE', K.failures, 0, A.failures - 1) or {}) do
    local id, attempt, reason, _, at, final, worker = unpack(cmsgpack.unpack(raw))
    if not seen[id] then
      seen[id] = true
      told[#told + 1] = { id, attempt, string.sub(reason, 1, TEXT), at, final and 1 or 0, worker, state_now(id) }
    end
  end
  return told
end

local cursor, busiest, delayed = groups()
return { now, cursor, busiest, delayed, runs(), failures() }
