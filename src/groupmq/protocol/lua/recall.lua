--[[
Ask workers for jobs that may not have begun: those named, or those in one page of all leases. A worker gives such a job
back or answers that it has begun (lib/recall.lua).

Arguments  `ids`, or `cursor` and `group`
  ids         job ids
  cursor      '0' = start
  group       only jobs of this group; absent = of all groups
Reply      {next cursor ('0' = end), ids of jobs that may not have begun, ids of running jobs of the page}
Events     none
Cost       about PAGE leases: some 10 commands, and 2 for each job that may not have begun
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/lease"
--- @include "lib/find"
--- @include "lib/recall"
local PAGE = 150
--- @writes allow-oom
local cursor, ids = '0', A.ids
if not ids then
  local page = redis.call('HSCAN', K.leases, A.cursor, 'COUNT', PAGE)
  cursor, ids = page[1], {}
  for i = 1, #page[2], 2 do
    if not A.group or lease.group_of(page[2][i + 1]) == A.group then ids[#ids + 1] = page[2][i] end
  end
end
local unsettled, running = {}, {}
for _, job in ipairs(find.jobs(ids)) do
  if recall.pending(job) then
    unsettled[#unsettled + 1] = job.id
  elseif job.lease then
    running[#running + 1] = job.id
  end
end
return commit({ cursor, unsettled, running })
