--[[
Run failed jobs again. Each job goes back to its original sort key, and its attempts are counted from 0. A job that
blocks its group (lib/blocking.lua) blocks it no longer.

Arguments
  ids         job ids
  stamps      the stamp of the failure that is meant, as `page` returns it: a job that has failed again since then is
              left alone; absent = any failure
Reply      per job, flat: the state it was found in ('' = no such job), and 1 = redriven, 0 = not,
           2 = beyond the bytes that one call may read (lib/room.lua): ask again
Events     added, unblocked
Cost       O(ids) fields in some ten commands, and 2 commands per group; with large jobs also 2 commands per job
]]
--- @include "lib/args"
--- @include "lib/whole"
--- @include "lib/meta"
--- @include "lib/room"
--- @include "lib/state"
--- @include "lib/find"
--- @include "transitions/redrive"
--- @writes allow-oom remembers
local reply, done = {}, {}
local ids = meta.large and room.first(A.ids) or A.ids
local states = state.load(ids)
for i, job in ipairs(find.jobs(ids)) do
  local stamp = A.stamps and A.stamps[i]
  local meant = job.state == 'failed' and not done[job.id] and (not stamp or whole(job.score) == stamp)
  if meant then
    done[job.id] = true
    redrive_job(job, states[i])
  end
  reply[2 * i - 1], reply[2 * i] = job.state or '', meant and 1 or 0
end
for i = #ids + 1, #A.ids do reply[2 * i - 1], reply[2 * i] = '', 2 end
if next(done) then return commit(reply) end
return reply
