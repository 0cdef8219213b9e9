--[[ Repair jobs, and the structures that hold their ids. ]]
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/whole"
--- @include "lib/meta"
--- @include "lib/record"
--- @include "lib/writes"
--- @include "lib/horizon"
--- @include "lib/members"
--- @include "lib/waiting"
--- @include "lib/state"
--- @include "lib/find"
--- @include "lib/lease"
--- @include "lib/stopping"
--- @include "lib/repair/repair"
--- @include "lib/repair/bodies"
--- @private

-- Restore a group that has live jobs but no entry in `groups`: count its jobs again from its leases and its sorted set.
local function adopt(g)
  g.adopted = true
  g.running = repair.running(true)[g.id] or 0
  repair.report('group that was not listed', g.id)
  members.reread(g)
end

-- Put back a job that has no entry: a finished one into its index, because it must not run again, any other into its
-- group.
local function put_somewhere(g, job)
  local s = state.load({ job.id })[1]
  if s and s[FINISHED] > 0 then
    W.zadd(K[s[REASON] == '' and 'completed' or 'failed'], whole(s[FINISHED] * 1000), job.id)
  else
    members.put(g, record.member(job.id, job.rec))
  end
end

-- Delete states that cannot be read. All other calls treat them as missing, so they would stay forever.
local function drop_unreadable_states(ids)
  for i, raw in ipairs(#ids > 0 and redis.call('HMGET', K.state, unpack(ids)) or {}) do
    if raw and not state.read(raw) then
      W.hdel(K.state, ids[i])
      repair.report('state that cannot be read', ids[i])
    end
  end
end

-- The same for leases. A job whose lease cannot be read counts as one that has none.
local function drop_unreadable_leases(ids)
  for i, raw in ipairs(lease.stored(ids)) do
    if raw and not lease.decode(raw) then
      W.hdel(K.leases, ids[i])
      repair.report('lease that cannot be read', ids[i])
    end
  end
end

-- A job must be in exactly one state, with exactly one entry.
function repair.jobs(ids)
  local found = find.jobs(ids)
  drop_unreadable_states(ids)
  drop_unreadable_leases(ids)
  local deadlines = #ids > 0 and redis.call('ZMSCORE', K.active, unpack(ids)) or {}
  for i = 1, #found do
    local job = found[i]
    if job.rec and not repair.lost_data(job) then
      local g, member = find.group(job), record.member(job.id, job.rec)
      local live = job.state ~= 'completed' and job.state ~= 'failed'
      if live and not g.raw and not g.adopted then adopt(g) end
      if g.adopted and job.state == 'delayed' then g.delayed = g.delayed + 1 end
      local waits = waiting.rank(g, member)
      local indexes = {}
      for _, name in ipairs({ 'delayed', 'completed', 'failed' }) do
        if redis.call('ZSCORE', K[name], job.id) then indexes[#indexes + 1] = name end
      end
      if job.lease then
        for _, name in ipairs(indexes) do
          W.zrem(K[name], job.id)
          repair.report('job in two places', job.id)
        end
        if not deadlines[i] then
          W.zadd(K.active, now, job.id)
          horizon.put(now)
          repair.report('lease without a deadline', job.id)
        end
      else
        if deadlines[i] then
          W.zrem(K.active, job.id)
          repair.report('deadline without a lease', job.id)
        end
        for p = 2, #indexes do
          W.zrem(K[indexes[p]], job.id)
          repair.report('job in two places', job.id)
        end
      end
      local elsewhere = job.lease or #indexes > 0
      if waits and elsewhere then
        members.drop(g, member)
        repair.report('job in two places', job.id)
      elseif not waits and not elsewhere then
        put_somewhere(g, job)
        repair.report('job in no place', job.id)
      end
    end
  end
end

-- A run that is being stopped must have a deadline, or its slot would never be freed.
function repair.stops(fences)
  for i = 1, #fences do
    if not redis.call('ZSCORE', K.stopping, fences[i]) then
      W.zadd(K.stopping, now, fences[i])
      horizon.put(now)
      meta.stopping = now
      repair.report('stopping run without an end', fences[i])
    end
  end
end

function repair.stopping(fences)
  for i = 1, #fences do
    if redis.call('HEXISTS', K.stops, fences[i]) == 0 then
      stopping.expire({ fences[i] })
      repair.report('end of no stopping run', fences[i])
    end
  end
end

-- An index must hold only ids of jobs that exist.
function repair.index(key, ids, is_zset)
  for i = 1, #ids do
    -- `state` also has the fields of earlier attempts (lib/history.lua).
    local id = string.sub(ids[i], 1, 1) == HISTORY and string.sub(ids[i], 2) or ids[i]
    if redis.call('HEXISTS', K.jobs, id) == 0 then
      if is_zset then W.zrem(key, ids[i]) else W.hdel(key, ids[i]) end
      repair.report('entry of a job that does not exist', id)
    end
  end
end
