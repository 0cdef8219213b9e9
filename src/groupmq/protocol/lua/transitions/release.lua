--[[ Release: a job returns to its group with its sort key, as if it had not been taken. No attempt is used. ]]
--- @include "lib/clock"
--- @include "lib/record"
--- @include "lib/group"
--- @include "lib/measure"
--- @include "lib/end_run"
--- @include "lib/put_back"
--- @include "transitions/delay"

-- Release a job that its worker has given back.
local function release_job(id, rec) put_back(id, rec) end

-- Release a job that is not known to have begun: its lease is over, or its worker has not received it.
local function release_unstarted(id, l, rec)
  end_run(id, l)
  release_job(id, rec)
end

-- Release a job and let its whole group rest for `delay` ms. A job without a group has no group to rest, so it is
-- delayed instead.
local function release_resting(id, rec, delay)
  local gid = record.group_of(rec)
  if delay > 0 and gid == '' then
    delay_job(id, rec, now + delay)
  else
    release_job(id, rec)
    if delay > 0 then group.rest(group.get(gid), now + delay) end
  end
end

-- Release a job whose handler raised RateLimited.
local function release_rate_limited(id, rec, delay)
  measure.count('rate_limited', 1)
  release_resting(id, rec, delay)
end

-- Release a job that an operator has asked for and that has not begun. The operator acts on it with its next call.
-- Until then no worker may take it again, or it would run although the operator found it waiting. (While the queue or
-- the group is paused, no worker does.)
local ASKED = 100 -- ms; longer than the operator pauses between two calls (client/queue/settling.py)
local function release_asked(id, rec) release_resting(id, rec, ASKED) end
