--[[ Release: a job returns to its group with its sort key, as if it had not been taken. No attempt is used. ]]
--- @include "lib/clock"
--- @include "lib/record"
--- @include "lib/group"
--- @include "lib/members"
--- @include "lib/lease_changes"
--- @include "lib/measure"
--- @include "transitions/delay"

-- End the lease and free the slot of a run. The transition that calls this decides what happens to the job.
local function end_run(id, l)
  lease_changes.revoke(id)
  group.free(group.get(l.gid), 1)
end

-- Return the job to its group with the sort key that it had.
local function put_back(id, rec)
  record.remember(id, rec)
  members.put(group.get(record.group_of(rec)), record.member(id, rec))
end

-- Release a job that is not known to have begun: its lease is over, or its worker has not received it.
local function release_unstarted(id, l, rec)
  end_run(id, l)
  put_back(id, rec)
end

-- Return a job whose handler raised Snooze: it may start again after `delay` ms, with its sort key. As after a retry,
-- its group waits for it; with `yields`, or without a group, it is delayed instead.
local function snooze_job(id, rec, delay, yields)
  local gid = record.group_of(rec)
  if delay > 0 and (yields or gid == '') then
    delay_job(id, rec, now + delay)
  else
    put_back(id, rec)
    if delay > 0 then group.hold(group.get(gid), id, now + delay, true) end
  end
end

-- Return a job and let its whole group rest for `delay` ms. The job keeps its sort key. A job without a group has no
-- group to rest, so it is delayed instead.
local function put_back_resting(id, rec, delay)
  local gid = record.group_of(rec)
  if delay > 0 and gid == '' then
    delay_job(id, rec, now + delay)
  else
    put_back(id, rec)
    if delay > 0 then group.rest(group.get(gid), now + delay) end
  end
end

-- Return a job whose handler raised RateLimited.
local function release_rate_limited(id, rec, delay)
  measure.count('rate_limited', 1)
  put_back_resting(id, rec, delay)
end

-- Return a job that an operator has asked for and that has not begun. The operator acts on it with its next call. Until
-- then no worker may take it again, or it would run although the operator found it waiting. (While the queue or the
-- group is paused, no worker does.)
-- ASKED: longer than the operator pauses between two calls (client/queue/settling.py).
local ASKED = 100
local function release_asked(id, rec) put_back_resting(id, rec, ASKED) end
