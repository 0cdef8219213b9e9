--[[ Repair groups: their members, their counts and their states. ]]
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/record"
--- @include "lib/group"
--- @include "lib/group_state"
--- @include "lib/members"
--- @include "lib/waiting"
--- @include "lib/repair/repair"
--- @private

-- Every member of a group must be a job of that group, with its own sort key.
function repair.members(g, found)
  local ids = {}
  for i = 1, #found do ids[i] = record.id_of(found[i]) end
  local recs = #ids > 0 and redis.call('HMGET', K.jobs, unpack(ids)) or {}
  for i = 1, #ids do
    if not recs[i] or record.member(ids[i], recs[i]) ~= found[i] or record.group_of(recs[i]) ~= g.id then
      members.drop(g, found[i])
      repair.report('member that is no job of its group', ids[i])
    end
  end
end

local function stale_holds(g)
  for id in pairs(g.holds or {}) do
    local rec = redis.call('HGET', K.jobs, id)
    if not rec or not waiting.rank(g, record.member(id, rec)) then return id end
  end
end

-- The ids of jobs that exist, each followed by its group.
function repair.with_groups(ids)
  local recs, flat = #ids > 0 and redis.call('HMGET', K.jobs, unpack(ids)) or {}, {}
  for i = 1, #ids do
    if recs[i] then flat[#flat + 1], flat[#flat + 2] = ids[i], record.group_of(recs[i]) end
  end
  return flat
end

-- Delayed jobs have no index by group, and there may be too many to count in one call: the client counts them page by
-- page while workers continue. Without `prints`, returns the groups that disagree and a fingerprint of their values.
-- With `prints`, repairs the groups whose value has not changed since; the client has counted them again in between.
function repair.delayed_counts(gids, counts, prints)
  local suspects = {}
  group.load(gids)
  for i = 1, #gids do
    local g = group.get(gids[i])
    local print = redis.sha1hex(g.raw or '')
    if g.delayed ~= counts[i] and not prints then
      suspects[#suspects + 1], suspects[#suspects + 2] = g.id, print
    elseif g.delayed ~= counts[i] and prints[i] == print then
      g.delayed, g.at = counts[i], 'unknown'
      repair.report('group with wrong counts', g.id)
      group.touch(g)
    end
  end
  return suspects
end

-- A group must have the right count of running jobs (`running` = nil: not known) and be stored in the state that
-- group_state.decide returns. A parked group that is due and not moved yet is not damaged.
function repair.group(g, running)
  if running and g.running ~= (running[g.id] or 0) then
    g.running = running[g.id] or 0
    repair.report('group with wrong counts', g.id)
    group.touch(g)
  end
  local id = stale_holds(g)
  while id do
    group.release(g, id)
    repair.report('hold of a job that does not wait', id)
    id = stale_holds(g)
  end
  if g.alone then repair.members(g, { g.head }) end
  local is_stray = g.unset and redis.call('EXISTS', group.key(g)) == 1
  if not g.touched and (is_stray or g.head ~= (waiting.first(g, 1)[1] or false)) then
    repair.report('group with a wrong head', g.id)
    members.reread(g)
  end
  if g.touched then
    g.at = 'unknown'
    return
  end
  group_state.refresh(g)
  local ready, parked = redis.call('ZSCORE', K.ready, g.id), redis.call('ZSCORE', K.parked, g.id)
  local right
  if g.state == 'ready' then
    right = (ready and tonumber(ready) == g.score and not parked) or (not ready and parked and tonumber(parked) <= now)
  elseif g.state == 'parked' then
    right = not ready and parked and tonumber(parked) == g.due
  else
    right = not ready and not parked and not (g.state == 'idle' and g.raw and g.running == 0 and g.delayed == 0)
  end
  if not right or (not g.raw and g.state ~= 'idle') then
    repair.report('group in the wrong state', g.id)
    g.at = 'unknown'
    group.touch(g)
  end
end
