--[[
Cancel jobs: what waits is removed, what runs is stopped by its worker, which is told at once.

Arguments  ids; or group, limit (the running jobs of the group, and up to `limit` of its waiting ones)
Reply      {per job: id, the state it was found in ('' = there is none), flat; of a group, how many are left waiting}
]]
--- @include "lib/find"
--- @include "lib/cancels"
--- @include "lib/mail"
--- @include "lib/settle"
--- @include "lib/wake"
local function of_group(gid, limit)
  local ids = {}
  local leases = redis.call('HGETALL', K.leases)
  for i = 1, #leases, 2 do
    if lease.decode(leases[i + 1]).gid == gid then ids[#ids + 1] = leases[i] end
  end
  local waiting = redis.call('ZRANGE', K.group .. gid, 0, limit - 1, 'REV')
  for i = 1, #waiting do ids[#ids + 1] = record.id_of(waiting[i]) end
  return ids, redis.call('ZCARD', K.group .. gid) - #waiting
end

local ids, left = A.ids, 0
if A.group then ids, left = of_group(A.group, A.limit) end
local reply, gone = {}, {}
local found = find.jobs(ids)
for i = 1, #found do
  local job = found[i]
  reply[2 * i - 1], reply[2 * i] = job.id, job.state or ''
  if job.state == 'active' then
    W.hset(K.cancels, job.id, W.whole(job.lease.token))
    mail.send(lease.worker(job.lease))
  elseif (job.state == 'waiting' or job.state == 'delayed') and not gone[job.id] then
    gone[job.id] = true
    find.detach(job)
    retention.forget(job.id)
    events.note('removed', job.id, record.group_of(job.rec))
  end
end
if settle.groups() then wake.up() end
W.commit()
return { reply, left }
