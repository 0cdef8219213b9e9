--[[
Snooze: the handler of a job raised Snooze. The job may start again after `delay` ms, with its sort key, and no attempt
is used. As after a retry, its group waits for it; with `yields`, or without a group, it is delayed instead.
]]
--- @include "lib/clock"
--- @include "lib/record"
--- @include "lib/group"
--- @include "lib/put_back"
--- @include "transitions/delay"

local function snooze_job(id, rec, delay, yields)
  local gid = record.group_of(rec)
  if delay > 0 and (yields or gid == '') then
    delay_job(id, rec, now + delay)
  else
    put_back(id, rec)
    if delay > 0 then group.hold(group.get(gid), id, now + delay, true) end
  end
end
