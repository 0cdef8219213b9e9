--[[
Where jobs are. A job is in exactly one place: it has a lease (active), or is in `delayed`, `completed` or `failed`,
or else waits in its group; with no record it is gone.
]]
--- @include "lib/finish"
local find = {}
--- @private

-- One table per id: {id, rec, state = name or nil, lease, score}.
function find.jobs(ids)
  local found = {}
  if #ids == 0 then return found end
  local recs = redis.call('HMGET', K.jobs, unpack(ids))
  local leases = lease.load(ids)
  local scores = {}
  for _, name in ipairs({ 'delayed', 'completed', 'failed' }) do
    scores[name] = redis.call('ZMSCORE', K[name], unpack(ids))
  end
  for i = 1, #ids do
    local job = { id = ids[i], rec = recs[i], lease = leases[i] }
    if job.rec then
      job.state = job.lease and 'active' or 'waiting'
      for name, all in pairs(scores) do
        if all[i] then job.state, job.score = name, tonumber(all[i]) end
      end
    end
    found[i] = job
  end
  return found
end

function find.group(job) return group.get(record.group_of(job.rec)) end

-- Take the job out of whatever place it is in, leaving its record. Its group is refreshed by the settling.
function find.detach(job)
  if meta.ttls then W.zrem(K.expiring, job.id) end
  if job.state == 'active' then
    finish.end_run(job.id, job.lease)
  elseif job.state == 'waiting' then
    members.drop(find.group(job), record.member(job.id, job.rec))
  else
    W.zrem(K[job.state], job.id)
    if job.state == 'delayed' then
      local g = find.group(job)
      g.delayed = math.max(0, g.delayed - 1)
      group.touch(g)
    end
  end
end
