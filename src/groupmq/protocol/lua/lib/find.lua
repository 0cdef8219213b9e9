--[[
Find the states of jobs. A job is in exactly one state: it has a lease (active), or is in `delayed`, `completed` or
`failed`, or else waits in its group. A job without a record does not exist.
]]
--- @include "lib/keys"
--- @include "lib/seen"
--- @include "lib/record"
--- @include "lib/group"
--- @include "lib/lease"
local find = {}
--- @private
local INDEXES = { 'delayed', 'completed', 'failed' }

-- Returns one table per id: {id, rec, state = name or nil, lease, score}. If an id comes twice, both share one table,
-- so that a change of its state holds for the second one too.
function find.jobs(ids)
  local found, known = {}, {}
  if #ids == 0 then return found end
  seen.add(K.jobs)
  local recs = redis.call('HMGET', K.jobs, unpack(ids))
  local leases = lease.load(ids)
  local scores = {}
  for _, name in ipairs(INDEXES) do
    seen.add(K[name])
    scores[name] = redis.call('ZMSCORE', K[name], unpack(ids))
  end
  for i = 1, #ids do
    local job = known[ids[i]] or { id = ids[i], rec = recs[i], lease = leases[i] }
    known[ids[i]] = job
    if job.rec and not job.state then
      job.state = job.lease and 'active' or 'waiting'
      for name, all in pairs(scores) do
        if all[i] then job.state, job.score = name, tonumber(all[i]) end
      end
    end
    found[i] = job
  end
  return found
end

-- The state of one job, '' if it does not exist. `l`: its lease. Its record is not read: it may have data.
function find.state(id, l)
  if redis.call('HEXISTS', K.jobs, id) == 0 then return '' end
  for _, name in ipairs(INDEXES) do
    if redis.call('ZSCORE', K[name], id) then return name end
  end
  return l and 'active' or 'waiting'
end

function find.group(job) return group.get(record.group_of(job.rec)) end
