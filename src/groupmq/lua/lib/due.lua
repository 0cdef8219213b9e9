--[[
What time brings: delayed jobs join their group, parked groups become ready, expired leases are taken back, jobs that
were not started in time fail.
Each kind at most BATCH per call; when more is due, the horizon is now and the caller comes straight back.
]]
--- @include "lib/finish"
--- @include "lib/find"
local due = {}
--- @private
local BATCH = 500
local failed = {} -- delayed jobs that this call has failed, which must not be promoted as well

-- The members of `key` that are due, and whether there are more than one call handles. Notes the time of the first that
-- is left.
local function take_due(key)
  local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
  if not first[1] then return {}, false end
  if tonumber(first[2]) > now then
    horizon.note(tonumber(first[2]))
    return {}, false
  end
  local entries = redis.call('ZRANGE', key, 0, BATCH, 'WITHSCORES')
  local ripe = {}
  for i = 1, #entries, 2 do
    local time = tonumber(entries[i + 1])
    if time > now or #ripe == BATCH then
      horizon.note(time)
      return ripe, time <= now
    end
    ripe[#ripe + 1] = entries[i]
  end
  return ripe, false
end

local function records(ids) return #ids > 0 and redis.call('HMGET', K.jobs, unpack(ids)) or {} end

local function groups_of(recs)
  local gids = {}
  for i = 1, #recs do
    if recs[i] then gids[#gids + 1] = record.group_of(recs[i]) end
  end
  return gids
end

-- Delayed jobs whose time has come take the place their order gives them.
function due.promote()
  local ids = take_due(K.delayed)
  local recs = records(ids)
  group.load(groups_of(recs))
  local promoted = 0
  for i = 1, #ids do
    W.zrem(K.delayed, ids[i])
    if recs[i] and not failed[ids[i]] then
      local g = group.get(record.group_of(recs[i]))
      g.delayed = math.max(0, g.delayed - 1)
      group.touch(g)
      finish.join(ids[i], recs[i])
      promoted = promoted + 1
    end
  end
  return promoted
end

function due.unpark()
  local gids = take_due(K.parked)
  group.load(gids)
  for i = 1, #gids do
    local g = group.get(gids[i])
    g.at = 'unknown' -- it stands in `parked`, whatever its value says
    group.touch(g)
  end
  return #gids
end

-- Expired leases. Returns a flat list: job id, group id, 1 if it was the end of the job.
function due.expire(policy)
  local ids = take_due(K.active)
  if #ids == 0 then return {} end
  local leases, recs = lease.load(ids), records(ids)
  local stalled = {}
  for i = 1, #ids do
    local id, l, rec = ids[i], leases[i], recs[i]
    if l and rec and l.ahead then
      finish.unstarted(id, l, rec)
    elseif l and rec then
      local final = finish.stalled(id, l, rec, policy)
      local n = #stalled
      stalled[n + 1], stalled[n + 2], stalled[n + 3] = id, l.gid, final and 1 or 0
    elseif l then
      finish.end_run(id, l)
      retention.forget(id) -- deleted behind our back: nothing of it may stay
    elseif not lease.over[id] then
      lease.revoke(id)
    end
  end
  return stalled
end

-- Jobs that were not started in time fail; before promotion, so that none of them joins its group first. Only queues
-- that ever had a ttl look. False = there are more.
function due.overdue()
  if not meta.ttls then return true end
  local ids, more = take_due(K.expiring)
  local found = find.jobs(ids)
  for i = 1, #found do
    local job = found[i]
    if job.state == 'waiting' or job.state == 'delayed' then
      find.detach(job)
      failed[job.id] = true
      local s = state.load({ job.id })[1] or state.fresh()
      finish.failed(job.id, record.group_of(job.rec), s, 'expired: not started within its ttl', '')
    else
      W.zrem(K.expiring, job.id)
    end
  end
  return not more
end
