--[[
Remove N jobs, in any state, with everything that is stored for them. The handler of a running job is stopped
(lib/stopping.lua).

Arguments
  ids         job ids
  states      names: remove only jobs in one of these states; absent = any
Reply      per id: 1 = removed, 0 = no such job or in another state, 2 = ask again: it may not have begun, or it is
           beyond the bytes that one call may read (lib/room.lua)
Events     removed, unblocked, drained
Cost       O(ids) fields in some ten commands, about 2 commands per group and per job that a worker holds; with large
           jobs also 2 commands per job
]]
--- @include "lib/args"
--- @include "lib/meta"
--- @include "lib/room"
--- @include "lib/find"
--- @include "transitions/remove"
--- @include "lib/recall"
--- @writes allow-oom remembers
local wanted
if A.states then
  wanted = {}
  for _, name in ipairs(A.states) do wanted[name] = true end
end
-- A job that may not have begun is settled as waiting or running. If neither state is wanted, its worker need not be
-- asked.
local settles = not wanted or wanted.waiting or wanted.active
local reply, gone = {}, {}
for i, job in ipairs(find.jobs(meta.large and room.first(A.ids) or A.ids)) do
  local pending = settles and not gone[job.id] and recall.pending(job)
  local removed = not pending and job.state and not gone[job.id] and (not wanted or wanted[job.state])
  if removed then
    gone[job.id] = true
    remove_job(job)
  end
  reply[i] = (pending and 2) or (removed and 1) or 0
end
for i = #reply + 1, #A.ids do reply[i] = 2 end
return commit(reply)
