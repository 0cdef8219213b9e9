--[[
Read the groups, runs and failed attempts that a monitor shows besides the counts, without the data of any job.

Arguments
  cursor      '0' = start
  again       ids of groups to read as well
  groups      how many groups to return, by either order
  runs        how many runs to return
  failures    how many failed attempts to read
Reply      {now, next cursor ('0' = end), groups with the most waiting jobs, groups whose head has waited longest,
            runs, longest first, failed attempts, newest first, one per job}
  group    {id, state, waiting, active, delayed, ms its head has waited or -1, ms until its head may start or -1}
  run      {id, group, attempt, started, worker}
  failure  {id, attempt, error, time, 1 if the last, worker, state the job is in now, '' if it is gone}
Events     none
Cost       O(again + groups + failures), however deep the queue: a page of PAGE groups, the first LEASES leases;
           one command per group, two more per returned group, at most 5 per failed attempt
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/distinct"
--- @include "lib/clock"
--- @include "lib/record"
--- @include "lib/bytes"
--- @include "lib/group"
--- @include "lib/waiting"
--- @include "lib/group_state"
--- @include "lib/lease"
--- @include "lib/find"
local PAGE, LEASES, TEXT, LOAD = 60, 150, 300, 4000

-- Sort `list` by `before` and return the first `n` items, each converted by `convert`.
local function first(list, n, before, convert)
  table.sort(list, before)
  local listed = {}
  for i = 1, math.min(n, #list) do listed[i] = convert(list[i]) end
  return listed
end

-- The groups of this page, those in `again`, and the first of the blocked and of the ready groups.
local function candidates()
  local scan = redis.call('HSCAN', K.groups, A.cursor, 'COUNT', PAGE)
  local gids, add = distinct()
  for i = 1, #scan[2], 2 do add(scan[2][i]) end
  for _, gid in ipairs(A.again) do add(gid) end
  for _, gid in ipairs(redis.call('ZRANGE', K.blocked, 0, A.groups - 1)) do add(gid) end
  for _, gid in ipairs(redis.call('ZRANGE', K.ready, 0, A.groups - 1)) do add(gid) end
  return scan[1], gids
end

-- The member that arrived first has waited longest, except for jobs that were delayed or brought an order.
local function earlier(a, b)
  if a.seq ~= b.seq then return a.seq < b.seq end
  return bytes.before(a.g.id, b.g.id)
end

local function larger(a, b)
  local n, m = a.waiting + a.g.running, b.waiting + b.g.running
  if n ~= m then return n > m end
  return bytes.before(a.g.id, b.g.id)
end

local function described(found)
  local g, waited = found.g, -1
  if not g.state then group_state.refresh(g) end
  local rec = g.head and redis.call('HGET', K.jobs, record.id_of(g.head))
  if rec then waited = math.max(0, now - record.waits_since(rec)) end
  return {
    g.id, group_state.shown(g, g.state), found.waiting, g.running, g.delayed, waited,
    g.due and math.max(0, g.due - now) or -1,
  }
end

local function groups()
  local cursor, gids = candidates()
  local live, behind = {}, {}
  for from = 1, #gids, LOAD do group.load({ unpack(gids, from, math.min(from + LOAD - 1, #gids)) }) end
  for i = 1, #gids do
    local g = group.get(gids[i])
    if g.raw and g.running < math.huge then
      local found = { g = g, waiting = g.head and waiting.count(g) or 0 }
      if found.waiting + g.running > 0 then live[#live + 1] = found end
      if g.head then
        found.seq = record.seq_of(g.head)
        behind[#behind + 1] = found
      end
    end
  end
  local busiest = first(live, A.groups, larger, described)
  local late = first(behind, A.groups, earlier, described)
  for i = 1, #late do late[i] = { listed = late[i], at = i } end
  local delayed = first(late, #late, function(a, b)
    if a.listed[6] ~= b.listed[6] then return a.listed[6] > b.listed[6] end
    return a.at < b.at
  end, function(one) return one.listed end)
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
    return a.l.fence < b.l.fence
  end, function(run)
    return { run.id, run.l.gid, run.l.attempts + 1, run.l.started, lease.worker(run.l) }
  end)
end

local function failures()
  local listed, seen = {}, {}
  for _, raw in ipairs(A.failures > 0 and redis.call('LRANGE', K.failures, 0, A.failures - 1) or {}) do
    local id, attempt, reason, _, at, final, worker = unpack(cmsgpack.unpack(raw))
    if not seen[id] then
      seen[id] = true
      local state_now = find.state(id, lease.load({ id })[1])
      listed[#listed + 1] = { id, attempt, string.sub(reason, 1, TEXT), at, final and 1 or 0, worker, state_now }
    end
  end
  return listed
end

--- @reads
local cursor, busiest, delayed = groups()
return { now, cursor, busiest, delayed, runs(), failures() }
