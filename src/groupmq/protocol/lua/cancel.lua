--[[
Cancel jobs. A waiting or delayed job is removed. A running job is stopped by its worker, which is notified at once.

Arguments  `ids`, or `group` and `limit`
  ids         job ids
  group       cancel the waiting jobs of this group
  limit       how many of them, at most
Reply      {per job, flat: id, the state it was found in ('' = no such job, 'unsettled' = it may not have begun: ask
            again), how many jobs of the group are left waiting}
           Jobs beyond the bytes that one call may read (lib/room.lua) are not in the reply.
Events     removed, drained
Cost       O(ids) fields in some ten commands, and one or two commands per job that a worker holds;
           in a queue with large jobs also two commands per job
]]
--- @include "lib/args"
--- @include "lib/meta"
--- @include "lib/record"
--- @include "lib/room"
--- @include "lib/find"
--- @include "transitions/remove"
--- @include "lib/recall"
--- @include "lib/interrupts"
--- @include "lib/group"
--- @include "lib/waiting"
--- @writes allow-oom remembers
local ids, left = A.ids, 0
if A.group then
  ids = {}
  local members = waiting.first(group.get(A.group), A.limit)
  for i = 1, #members do ids[i] = record.id_of(members[i]) end
end
if meta.large then ids = room.first(ids) end
if A.group then left = waiting.count(group.get(A.group)) - #ids end
local reply, gone = {}, {}
local found = find.jobs(ids)
for i = 1, #found do
  local job = found[i]
  local found_in = not gone[job.id] and recall.pending(job) and 'unsettled' or job.state or ''
  reply[2 * i - 1], reply[2 * i] = job.id, found_in
  if found_in == 'active' then
    interrupts.cancel(job.id, job.lease)
  elseif (found_in == 'waiting' or found_in == 'delayed') and not gone[job.id] then
    gone[job.id] = true
    remove_job(job)
  end
end
return commit({ reply, left })
