--[[
Remove N jobs in whatever state; nothing of them remains. A running one loses its lease, its worker is told.

Arguments  ids, states (names; only jobs in one of these go, absent = any)
Reply      per id: 1 removed, 0 not there or in another state
]]
--- @include "lib/find"
--- @include "lib/settle"
--- @include "lib/wake"
local found = find.jobs(A.ids)
local wanted
if A.states then
  wanted = {}
  for _, name in ipairs(A.states) do wanted[name] = true end
end
local reply, gone = {}, {}
for i = 1, #found do
  local job = found[i]
  local removed = job.state and not gone[job.id] and (not wanted or wanted[job.state])
  if removed then
    gone[job.id] = true
    find.detach(job)
    retention.forget(job.id)
    events.note('removed', job.id, record.group_of(job.rec))
  end
  reply[i] = removed and 1 or 0
end
if settle.groups() then wake.up() end
W.commit()
return reply
