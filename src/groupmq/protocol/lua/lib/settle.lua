--[[ The end of a call for its groups: note their members, states and values for the commit. ]]
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
--- @include "lib/events"
local settle = {}
--- @private

local function note_state(g, state, at, ready, unready)
  if state == 'ready' then
    if at ~= 'ready' or g.head ~= g.was_head or g.started then -- started: maybe a new ticket, same head
      local n = #ready
      ready[n + 1], ready[n + 2] = whole(g.score), g.id
    end
  elseif at ~= 'none' then
    unready[#unready + 1] = g.id
  end
  if state == 'parked' then
    W.zadd(K.parked, whole(g.due), g.id)
  elseif at == 'unknown' then
    W.zrem(K.parked, g.id)
  end
end

local function note_value(g, values)
  local value = group_value.pack(g)
  if not value then
    if g.raw then W.hdel(K.groups, g.id) end
  elseif value ~= g.raw then
    local n = #values
    values[n + 1], values[n + 2] = g.id, value
  end
end

local function note_members(g)
  local key = group.key(g)
  if g.popped then W.pop(key, g.popped) end
  if g.removed then W.give('ZREM', key, g.removed) end
  local added = members.to_add(g)
  if added and #added == 2 then
    W.zadd_one(key, added[2])
    if not g.stored then W.unseen(key) end
  elseif added then
    W.give('ZADD', key, added)
  end
  if g.stored then seen.add(key) end
end

-- Publish `drained` if the last group with a live job is gone.
local function note_drained(values)
  local gone = W.noted('HDEL', K.groups)
  if gone > 0 and #values == 0 and redis.call('HLEN', K.groups) == gone then events.note('drained', '', '') end
end

-- Note the changes of all touched groups, once per call, at its end. Returns true if one of them may start a job now.
function settle.groups()
  local touched, any_ready = call.touched, false
  if not touched[1] then return false end
  local ready, unready, values = W.list('ZADD', K.ready), W.list('ZREM', K.ready), W.list('HSET', K.groups)
  for i = 1, #touched do
    local g = touched[i]
    if g.popped or g.removed or g.added then note_members(g) end
    if g.stale then group_state.refresh(g) end
    if g.rate and g.started then starts.note_of_group(g) end
    local state, at = g.state, g.at
    if state then
      note_state(g, state, at, ready, unready)
      note_value(g, values)
    end
    if state == 'ready' or (not state and at == 'ready') then any_ready = true end
  end
  note_drained(values)
  return any_ready and not meta.paused and not rate.is_throttled()
end
