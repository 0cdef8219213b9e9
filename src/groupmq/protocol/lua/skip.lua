--[[
Skip jobs that block their groups (lib/blocking.lua), by id, or the first ones of a group: they stay failed, and no
longer block their groups.

Arguments  `ids`, or `group` and `limit`
  ids         job ids
  group       skip the jobs that block this group
  limit       how many of them, at most
  keep        {completed, failed}: how many finished jobs to keep; a skipped job counts among them
Reply      {per job, flat: the state it was found in ('' = no such job), and 1 = skipped, 0 = it blocks no group,
            2 = beyond the bytes that one call may read (lib/room.lua): ask again,
            how many jobs still block the group; 0 if called with `ids`}
Events     unblocked
Cost       O(ids) or O(limit) fields in some ten commands, about 2 commands per job
]]
--- @include "lib/args"
--- @include "lib/meta"
--- @include "lib/room"
--- @include "lib/find"
--- @include "lib/blocking"
--- @include "lib/blocking_changes"
--- @include "lib/retention"
--- @writes allow-oom remembers
local ids, left = A.ids, 0
if A.group then
  ids = blocking.first(A.group, A.limit)
end
local wanted, reply, any = #ids, {}, false
if meta.large then ids = room.first(ids) end
if A.group then left = blocking.count(A.group) - #ids end
for i, job in ipairs(find.jobs(ids)) do
  -- A job whose record was deleted from outside must not block its group for ever.
  local skipped = (job.state == 'failed' or not job.state) and blocking_changes.resolve(job.id)
  if skipped then
    if job.state then retention.released(job.id, job.score) end
    any = true
  end
  reply[2 * i - 1], reply[2 * i] = job.state or '', skipped and 1 or 0
end
for i = #ids + 1, wanted do reply[2 * i - 1], reply[2 * i] = '', 2 end
if not any then return { reply, left } end
retention.apply(A.keep)
return commit({ reply, left })
