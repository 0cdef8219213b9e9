--[[
Finding and mending damage that no transition of ours makes: keys edited by hand, records evicted, a half-restored
backup. Each function checks a page of one structure against the others inside one atomic call, notes the mending like
any other change, and names what it found. In normal life it finds nothing.
]]
--- @include "lib/find"
--- @include "lib/repeats"
local mend = { found = {} }
--- @private
local MOST_DELAYED = 20000

local function report(kind, id)
  local n = #mend.found
  mend.found[n + 1], mend.found[n + 2] = kind, id
end

local function count_by_group(gids)
  local n = {}
  for i = 1, #gids do n[gids[i]] = (n[gids[i]] or 0) + 1 end
  return n
end

-- How many jobs of each group run, and how many are delayed (nil when they are too many for one call).
function mend.census()
  local running, delayed = {}, {}
  for _, raw in ipairs(redis.call('HVALS', K.leases)) do running[#running + 1] = lease.decode(raw).gid end
  if redis.call('ZCARD', K.delayed) > MOST_DELAYED then return count_by_group(running), nil end
  local ids = redis.call('ZRANGE', K.delayed, 0, -1)
  for at = 1, #ids, CHUNK do
    local recs = redis.call('HMGET', K.jobs, unpack(ids, at, math.min(at + CHUNK - 1, #ids)))
    for i = 1, #recs do
      if recs[i] then delayed[#delayed + 1] = record.group_of(recs[i]) end
    end
  end
  return count_by_group(running), count_by_group(delayed)
end

-- A group with live jobs whose entry in `groups` is gone: its zset is not empty, whatever `groups` says.
local function adopt(g)
  local running, delayed = mend.census()
  g.adopted = true
  g.running = running[g.id] or 0
  g.delayed = delayed and delayed[g.id] or 0
  report('group that was not listed', g.id)
  members.reread(g)
end

-- A job that finished is not run again for having lost its entry.
local function put_somewhere(g, job)
  local s = state.load({ job.id })[1]
  if s and s[FINISHED] > 0 then
    W.zadd(K[s[REASON] == '' and 'completed' or 'failed'], W.whole(s[FINISHED] * 1000), job.id)
  else
    members.put(g, record.member(job.id, job.rec))
  end
end

-- A job is in exactly one place, and the place knows it.
function mend.jobs(ids)
  local found = find.jobs(ids)
  local deadlines = #ids > 0 and redis.call('ZMSCORE', K.active, unpack(ids)) or {}
  for i = 1, #found do
    local job = found[i]
    if job.rec then
      local g, member = find.group(job), record.member(job.id, job.rec)
      local live = job.state ~= 'completed' and job.state ~= 'failed'
      if live and not g.raw and not g.adopted then adopt(g) end
      local waits = redis.call('ZSCORE', group.key(g), member)
      local places = {}
      for _, name in ipairs({ 'delayed', 'completed', 'failed' }) do
        if redis.call('ZSCORE', K[name], job.id) then places[#places + 1] = name end
      end
      if job.lease then
        for _, name in ipairs(places) do
          W.zrem(K[name], job.id)
          report('job in two places', job.id)
        end
        if not deadlines[i] then
          W.zadd(K.active, now, job.id)
          report('lease without a deadline', job.id)
        end
      else
        if deadlines[i] then
          W.zrem(K.active, job.id)
          report('deadline without a lease', job.id)
        end
        for p = 2, #places do
          W.zrem(K[places[p]], job.id)
          report('job in two places', job.id)
        end
      end
      local elsewhere = job.lease or #places > 0
      if waits and elsewhere then
        members.drop(g, member)
        report('job in two places', job.id)
      elseif not waits and not elsewhere then
        put_somewhere(g, job)
        report('job in no place', job.id)
      end
    end
  end
end

-- An index holds only ids of jobs that exist.
function mend.index(key, ids, is_zset)
  local recs = #ids > 0 and redis.call('HMGET', K.jobs, unpack(ids)) or {}
  for i = 1, #ids do
    if not recs[i] then
      if is_zset then W.zrem(key, ids[i]) else W.hdel(key, ids[i]) end
      report('entry of a job that does not exist', ids[i])
    end
  end
end

-- The waiting members of a group are jobs of that group, at their own place.
function mend.members(g, found)
  local ids = {}
  for i = 1, #found do ids[i] = record.id_of(found[i]) end
  local recs = #ids > 0 and redis.call('HMGET', K.jobs, unpack(ids)) or {}
  for i = 1, #ids do
    if not recs[i] or record.member(ids[i], recs[i]) ~= found[i] or record.group_of(recs[i]) ~= g.id then
      members.drop(g, found[i])
      report('member that is no job of its group', ids[i])
    end
  end
end

local function stale_holds(g)
  for id in pairs(g.holds or {}) do
    local rec = redis.call('HGET', K.jobs, id)
    if not rec or not redis.call('ZSCORE', group.key(g), record.member(id, rec)) then return id end
  end
end

-- A group's counts are true, and it stands where refresh says. A parked group that is due is not yet damage.
function mend.group(g, running, delayed)
  if g.running ~= (running[g.id] or 0) or (delayed and g.delayed ~= (delayed[g.id] or 0)) then
    g.running = running[g.id] or 0
    g.delayed = delayed and delayed[g.id] or (not delayed and g.delayed) or 0
    report('group with wrong counts', g.id)
    group.touch(g)
  end
  local id = stale_holds(g)
  while id do
    group.release(g, id)
    report('hold of a job that does not wait', id)
    id = stale_holds(g)
  end
  local first = redis.call('ZRANGE', group.key(g), -1, -1)[1] or false
  if not g.touched and g.head ~= first then
    report('group with a wrong head', g.id)
    members.reread(g)
  end
  if g.touched then
    g.at = 'unknown'
    return
  end
  group.refresh(g)
  local ready, parked = redis.call('ZSCORE', K.ready, g.id), redis.call('ZSCORE', K.parked, g.id)
  local right
  if g.place == 'ready' then
    right = (ready and tonumber(ready) == g.score and not parked) or (not ready and parked and tonumber(parked) <= now)
  elseif g.place == 'parked' then
    right = not ready and parked and tonumber(parked) == g.due
  else
    right = not ready and not parked and not (g.place == 'idle' and g.raw and g.running == 0 and g.delayed == 0)
  end
  if not right or (not g.raw and g.place ~= 'idle') then
    report('group in the wrong place', g.id)
    g.at = 'unknown'
    group.touch(g)
  end
end

-- A repeat that is defined ticks, one that is not does not.
function mend.repeats(rids)
  local values = #rids > 0 and redis.call('HMGET', K.repeats, unpack(rids)) or {}
  local ticks = #rids > 0 and redis.call('ZMSCORE', K.ticks, unpack(rids)) or {}
  for i = 1, #rids do
    local sound = values[i] and repeats.is_sound(values[i])
    if values[i] and not sound then
      report('repeat that cannot be read', rids[i])
      repeats.remove(rids[i])
    elseif ticks[i] and not values[i] then
      report('tick of no repeat', rids[i])
      repeats.remove(rids[i])
    elseif sound then
      local definition, body = repeats.unpack(values[i])
      if tonumber(ticks[i] or nil) ~= definition.next then
        report('repeat that does not tick', rids[i])
        repeats.save(rids[i], definition, body)
      end
    end
  end
  local first = redis.call('ZRANGE', K.ticks, 0, 0, 'WITHSCORES')[2]
  if meta.repeat_at ~= tonumber(first or nil) then report('wrong time of the next tick', 'repeat_at') end
  if #mend.found > 0 then repeats.settle() end
end
