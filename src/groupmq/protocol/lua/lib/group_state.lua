--[[
A group is in exactly one state, and only `group_state.decide` decides which. The first line that applies counts:

  running == concurrency     busy    in neither zset; the end of a run refreshes it. While its breaker is open, one
                                     run is enough: the probe
  no waiting job             idle    in neither zset
  paused by an operator      paused  in neither zset
  a failed job blocks it     blocked in neither zset
  its head may not start yet parked  in `parked`, by the time it may
  otherwise                  ready   in `ready`, with the score of lib/line.lua

There is no second list of busy groups, and no lock with its own lifetime, so a crash cannot leave two records that
disagree.
]]
--- @include "lib/clock"
--- @include "lib/horizon"
--- @include "lib/gate"
--- @include "lib/line"
local group_state = {}
--- @private

-- The one decision: returns the state of the group, and until when it is parked.
function group_state.decide(g)
  if g.running >= g.concurrency or (g.opened and g.running > 0) then
    return 'busy'
  elseif not g.head then
    return 'idle'
  elseif g.paused then
    return 'paused'
  elseif g.blocked then
    return 'blocked'
  end
  local time = g.gated and gate.opens(g) or 0
  if time > now then return 'parked', time end
  return 'ready'
end

function group_state.refresh(g)
  g.stale = false
  if g.till and not g.head then g.since, g.till = nil, nil end
  local state, time = group_state.decide(g)
  g.state = state
  if state == 'parked' then
    g.due = time
    horizon.add(time)
  elseif state == 'ready' then
    g.score = line.score(g)
  end
end

-- The state to show to people. A group whose slots are all taken is shown as idle if no job of it waits. `blocked` is
-- shown even if no job waits, because the next one will have to. If a job waits, a pause is shown instead, because it
-- has to end first.
function group_state.shown(g, state)
  if g.paused and g.head then return 'paused' end
  if g.blocked then return 'blocked' end
  if state == 'busy' and not g.head then return 'idle' end
  return state
end
