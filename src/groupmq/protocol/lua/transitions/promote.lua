--[[
Promote: a delayed job joins its group by its sort key, because its time has come or because a person asked for it.
]]
--- @include "lib/record"
--- @include "lib/gate"
--- @include "lib/group"
--- @include "lib/put_back"
--- @include "transitions/delay"

-- `by_person`: the job is wanted now. So it opens no window for late arrivals (lib/gate.lua), for which it would wait.
local function promote_job(id, rec, by_person)
  undelay_job(id, rec)
  if not by_person then gate.arrive(group.get(record.group_of(rec))) end
  put_back(id, rec)
end
