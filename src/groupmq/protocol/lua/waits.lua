--[[
Read how long jobs have waited: the startable job that has waited longest, the group whose head cannot start
(lib/held.lua) and has waited longest, and the paused group whose head has waited longest. They are told apart because a
group that was paused long ago would hide all other held groups. One call reads a page of each key.

Arguments  where to continue in each key; absent = that key is done
  ready       score in `ready`
  active      offset in `active`
  parked      offset in `parked`
  conf        cursor of the groups with settings
  blocked     offset in `blocked`
Reply      {now, {ms waited, group, job} or {}, held or {}, paused or {}, running jobs of each worker, flat: worker,
            count ..., {ready, active, parked, conf, blocked} to continue with, '' = done}
  held     {ms waited, group, reason, holder or '', its attempt, since when the head waits, until when it is held or 0,
            waiting jobs, failed attempts in a row that its breaker counts}; not of a paused group
  paused   the same of a paused group
Events     none
Cost       O(PAGE) for each key, and LEVELS priorities of `ready`
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/call"
--- @include "lib/whole"
--- @include "lib/meta"
--- @include "lib/record"
--- @include "lib/group"
--- @include "lib/lease"
--- @include "lib/oldest"
--- @include "lib/held"
--- @include "lib/waiting"
local PAGE, LEVELS, LINE, LOAD = 100, 8, 50, 4000

-- Look at the jobs without a group. All of them may start, so the first of each priority is enough.
local function look_at_ungrouped()
  local g, top = group.get(''), waiting.START
  for _ = 1, LEVELS do
    local member = waiting.page(g, top, 1)[1]
    if not member then return end
    oldest.add(call.in_line, g, member)
    top = waiting.after(record.level_of(member))
  end
end

-- Look at each head once, in the state that it has now. Only calls of workers move groups between the stored states.
local function look_at_groups(gids)
  for from = 1, #gids, LOAD do group.load({ unpack(gids, from, math.min(from + LOAD - 1, #gids)) }) end
  for i = 1, #gids do
    local g = group.get(gids[i])
    if g.head and g.running < math.huge and not g.looked_at then
      g.why = held.reason(g, call.holders[g.id])
      g.looked_at = g.why ~= nil or g.state == 'ready'
      if g.why then
        oldest.add(g.why == 'paused' and call.paused or call.unable, g, g.head)
      elseif g.id == '' then
        look_at_ungrouped()
      elseif g.looked_at then
        oldest.add(call.in_line, g, g.head)
      end
    end
  end
end

-- Look at the first LINE groups of each priority.
local function look_in_line(from)
  for _ = 1, LEVELS do
    local found = redis.call('ZRANGE', K.ready, from, '+inf', 'BYSCORE', 'LIMIT', 0, LINE, 'WITHSCORES')
    if not found[1] then return '' end
    local gids = {}
    for i = 1, #found, 2 do gids[#gids + 1] = found[i] end
    look_at_groups(gids)
    from = whole(record.next_level(tonumber(found[2])))
  end
  return from
end

-- Whether run `l` is rather the holder of its group than `before`: a prefetched job may not have started.
local function is_rather(l, before)
  if l.prefetched ~= before.prefetched then return before.prefetched end
  return l.started < before.started
end

-- Look at the groups of running jobs. Also find the job of each group that started first, and how many jobs each worker
-- runs.
local function look_at_runs(offset)
  local ids = redis.call('ZRANGE', K.active, offset, offset + PAGE - 1)
  local gids = {}
  for i, l in ipairs(lease.load(ids)) do
    if l then
      local worker, before = lease.worker(l), call.holders[l.gid]
      if not l.prefetched then call.running[worker] = (call.running[worker] or 0) + 1 end
      if not before then gids[#gids + 1] = l.gid end
      if not before or is_rather(l, before) then
        call.holders[l.gid] = { id = ids[i], started = l.started, attempt = l.attempts + 1, prefetched = l.prefetched }
      end
    end
  end
  look_at_groups(gids)
  return #ids == PAGE and whole(offset + PAGE) or ''
end

-- Look at the groups of runs that are being stopped. Such a run is the holder only if no other job of its group runs.
local function look_at_stopping()
  local fences = meta.stopping and redis.call('ZRANGE', K.stopping, 0, PAGE - 1) or {}
  local gids = {}
  for i, value in ipairs(fences[1] and redis.call('HMGET', K.stops, unpack(fences)) or {}) do
    gids[i] = value and (struct.unpack('>I2c0', value)) or ''
    call.holders[gids[i]] = call.holders[gids[i]] or { id = '', attempt = 0, stopping = true }
  end
  look_at_groups(gids)
end

-- Look at a page of `key`, a zset of groups that cannot start: `parked` or `blocked`.
local function look_at_page(key, offset)
  local gids = redis.call('ZRANGE', key, offset, offset + PAGE - 1)
  look_at_groups(gids)
  return #gids == PAGE and whole(offset + PAGE) or ''
end

local function look_at_paused(cursor)
  local scan, gids = redis.call('HSCAN', K.conf, cursor, 'COUNT', PAGE), {}
  for i = 1, #scan[2], 2 do
    if cmsgpack.unpack(scan[2][i + 1]).paused then gids[#gids + 1] = scan[2][i] end
  end
  look_at_groups(gids)
  return scan[1] == '0' and '' or scan[1]
end

local function described(heads)
  local head = oldest.longest(heads)
  return head and held.described(head, call.holders[head.g.id]) or {}
end

--- @reads
call.in_line, call.unable, call.paused, call.holders, call.running = oldest.new(), oldest.new(), oldest.new(), {}, {}
local ready = A.ready and look_in_line(A.ready) or ''
local active = A.active and look_at_runs(tonumber(A.active)) or ''
if A.active then look_at_stopping() end
local parked = A.parked and look_at_page(K.parked, tonumber(A.parked)) or ''
local conf = A.conf and look_at_paused(A.conf) or ''
local blocked = A.blocked and look_at_page(K.blocked, tonumber(A.blocked)) or ''
local first, workers = oldest.longest(call.in_line), {}
for worker, n in pairs(call.running) do
  workers[#workers + 1] = worker
  workers[#workers + 1] = n
end
local startable = first and { first.ms, first.g.id, record.id_of(first.member) } or {}
local following = { ready, active, parked, conf, blocked }
return { now, startable, described(call.unable), described(call.paused), workers, following }
