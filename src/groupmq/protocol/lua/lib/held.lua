--[[
Why the head of a group with waiting jobs cannot start:

  paused        by an operator
  blocked       a job of the group has failed for good (lib/blocking.lua); it is the holder
  running       all slots of the group are taken; one of the running jobs is the holder
  stopping      an operator removed, failed or cancelled a job whose handler has not ended (lib/stopping.lua)
  backoff       the head failed and waits for its next attempt; the head is the holder
  snoozed       the handler of the head raised Snooze; the head is the holder
  rate_limited  a handler raised RateLimited
  breaker       too many attempts in a row have failed (lib/breaker_changes.lua)
  rate          the rate limit of the group
  window        an ordering window has not passed
]]
--- @include "lib/keys"
--- @include "lib/record"
--- @include "lib/rate"
--- @include "lib/state"
--- @include "lib/group_state"
--- @include "lib/waiting"
--- @include "lib/blocking"
local held = {}
--- @private

-- The reason, nil if the head may start now. `holder`: a running or stopping run of the group, if one is known.
function held.reason(g, holder)
  group_state.refresh(g)
  if g.paused then return 'paused' end
  if g.blocked then return 'blocked' end
  if g.state == 'busy' then return holder and (holder.stopping and 'stopping' or 'running') or nil end
  return held.gate(g)
end

-- The same for a group whose state is known. Does not distinguish 'stopping' from 'running'.
function held.why(g)
  if g.paused then return 'paused' end
  if g.blocked then return 'blocked' end
  if g.state == 'busy' then return 'running' end
  return held.gate(g)
end

-- The reason why a group is parked, nil if it is not.
function held.gate(g)
  if g.state ~= 'parked' then return nil end
  local id = record.id_of(g.head)
  if g.holds and g.holds[id] == g.due then return g.snoozed and g.snoozed[id] and 'snoozed' or 'backoff' end
  if g.rest == g.due then return 'rate_limited' end
  if g.opened == g.due then return 'breaker' end
  return g.rate and rate.next(g) == g.due and 'rate' or 'window'
end

-- The job that has blocked the group longest, '' if it is not known.
function held.blocker(g) return blocking.first(g.id, 1)[1] or '' end

-- How often a job that is not running now has run.
function held.attempts(id)
  local raw = redis.call('HGET', K.state, id)
  local s = raw and state.read(raw)
  return s and s[ATTEMPTS] or 0
end

-- Describe a head that cannot start (lib/oldest.lua) in the form in which waits.lua returns it. `running`: a run of its
-- group.
function held.described(head, running)
  local g = head.g
  local holder = { id = '', attempt = 0 }
  if g.why == 'running' then holder = running end
  if g.why == 'backoff' or g.why == 'snoozed' or g.why == 'blocked' then
    local id = g.why == 'blocked' and held.blocker(g) or record.id_of(g.head)
    holder = { id = id, attempt = held.attempts(id) }
  end
  local till = g.state == 'parked' and g.due or 0
  local n_waiting = waiting.count(g)
  return { head.ms, g.id, g.why, holder.id, holder.attempt, head.since, till, n_waiting, g.failures or 0 }
end
