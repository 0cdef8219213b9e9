--[[ Delay: a job waits outside its group until `time` (epoch ms). ]]
--- @include "lib/keys"
--- @include "lib/whole"
--- @include "lib/record"
--- @include "lib/writes"
--- @include "lib/horizon"
--- @include "lib/group"

local function delay_job(id, rec, time)
  local g = group.get(record.group_of(rec))
  g.delayed = g.delayed + 1
  group.touch(g)
  W.zadd(K.delayed, whole(time), id)
  horizon.add(time)
end

-- End the delay. The transition that calls this decides what happens to the job.
local function undelay_job(id, rec)
  local g = group.get(record.group_of(rec))
  g.delayed = math.max(0, g.delayed - 1)
  group.touch(g)
  W.zrem(K.delayed, id)
end
