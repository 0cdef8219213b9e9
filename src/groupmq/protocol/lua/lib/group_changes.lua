--[[ Changes of groups: at the end of a call their members, states and values are noted for the commit. ]]
--- @include "lib/call"
--- @include "lib/keys"
--- @include "lib/whole"
--- @include "lib/meta"
--- @include "lib/seen"
--- @include "lib/writes"
--- @include "lib/rate"
--- @include "lib/starts"
--- @include "lib/group_value"
--- @include "lib/group"
--- @include "lib/group_state"
--- @include "lib/members"
--- @include "lib/waiting"
--- @include "lib/events"
local group_changes = {}
--- @private

local function note_state(g, state, at)
  if state == 'ready' then
    if at ~= 'ready' or g.head ~= g.was_head or g.started then -- started: perhaps a new ticket for the same head
      W.zadd(K.ready, whole(g.score), g.id)
    end
  elseif at ~= 'none' then
    W.zrem(K.ready, g.id)
  end
  if state == 'parked' then
    W.zadd(K.parked, whole(g.due), g.id)
  elseif at == 'unknown' then
    W.zrem(K.parked, g.id)
  end
end

local function note_value(g)
  local value = group_value.pack(g)
  if not value then
    if g.raw then W.hdel(K.groups, g.id) end
  elseif value ~= g.raw then
    W.hset(K.groups, g.id, value)
  end
end

-- Note the members of a group that had no sorted set. It gets one as soon as two jobs wait. The jobs without a group
-- always have one, because repartitioning copies it.
local function note_first_members(g)
  local all, was_alone = g.added and members.to_add(g) or {}, g.alone
  if g.alone and not (g.removed and g.removed[g.was_head]) then
    all[#all + 1], all[#all + 2] = '0', g.was_head
  end
  g.alone = #all == 2 and g.id ~= ''
  if g.alone ~= was_alone then g.stale = true end -- its value changes, even if its head stays
  if all[1] and not g.alone then W.zadd_all(group.key(g), all) end
end

local function note_members(g)
  if g.unset then return note_first_members(g) end
  local key = group.key(g)
  if g.popped then W.zrem_ranks(key, waiting.ranks(g.popped)) end
  if g.removed then W.zrem_all(key, g.removed) end
  if g.added then W.zadd_all(key, members.to_add(g)) end
  if g.stored then seen.add(key) end
end

-- Publish `drained` if the last group with a live job is gone.
local function note_drained()
  local gone = W.n_removed(K.groups)
  if gone > 0 and not W.is_put(K.groups) and redis.call('HLEN', K.groups) == gone then
    events.publish('drained', '', '')
  end
end

-- Note the changes of all touched groups, once per call, at its end. Returns true if one of them may start a job now.
function group_changes.note()
  local touched, any_ready = call.touched, false
  if not touched[1] then return false end
  for i = 1, #touched do
    local g = touched[i]
    if g.popped or g.removed or g.added then note_members(g) end
    if g.stale then group_state.refresh(g) end
    if g.rate and g.started then starts.note_of_group(g) end
    local state, at = g.state, g.at
    if state then
      note_state(g, state, at)
      note_value(g)
    end
    if state == 'ready' or (not state and at == 'ready') then any_ready = true end
  end
  note_drained()
  return any_ready and not meta.paused and not rate.is_limited()
end
