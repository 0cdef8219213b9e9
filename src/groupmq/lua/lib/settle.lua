--[[
The end of a call for its groups: their members, places and values are noted for the commit. Once a call, at its end.
]]
--- @include "lib/members"
--- @include "lib/events"
local settle = {}
--- @private
local ready, unready = W.list('ZADD', K.ready), W.list('ZREM', K.ready)
local values = W.list('HSET', K.groups)

local function note_place(g, place, at)
  if place == 'ready' then
    if at ~= 'ready' or g.head ~= g.was_head or g.started then -- served, it may have a new turn and the same head
      local n = #ready
      ready[n + 1], ready[n + 2] = W.whole(g.score), g.id
    end
  elseif at ~= 'none' then
    unready[#unready + 1] = g.id
  end
  if place == 'parked' then
    W.zadd(K.parked, W.whole(g.due), g.id)
  elseif at == 'unknown' then
    W.zrem(K.parked, g.id)
  end
end

local function note_value(g)
  local head, running, delayed = g.head, g.running, g.delayed
  local value
  if head then
    value = struct.pack('>I4I4I2', running, delayed, #head) .. head
  elseif running > 0 or delayed > 0 then
    value = struct.pack('>I4I4I2', running, delayed, 0)
  else
    if g.raw then W.hdel(K.groups, g.id) end
    return
  end
  if g.gated then value = value .. group.pack_waits(g) end
  if value ~= g.raw then
    local n = #values
    values[n + 1], values[n + 2] = g.id, value
  end
end

-- Note what changed of all touched groups; true if one of them may start a job now. Once a call, at its end.
function settle.groups()
  local any_ready, unseen, n = false, { K.wake }, 1
  local touched = group.touched()
  for i = 1, #touched do
    local g = touched[i]
    if g.popped or g.removed or g.added then
      local key = group.key(g)
      if g.popped then W.pop(key, g.popped) end
      if g.removed then W.give('ZREM', key, g.removed) end
      local added = g.added
      if added and #added == 2 then
        W.zadd_one(key, added[2])
      elseif added then
        W.give('ZADD', key, added)
      end
      if not g.stored then
        n = n + 1
        unseen[n] = key
      end
    end
    if g.stale then group.refresh(g) end
    if g.rate and g.started then rate.note(g) end
    local place, at = g.place, g.at
    if place then
      note_place(g, place, at)
      note_value(g)
    end
    if place == 'ready' or (not place and at == 'ready') then any_ready = true end
  end
  -- Every key is looked at before the first write: one of a wrong type, or one that a resharding has moved away, must
  -- stop the call while nothing is written. One command for all; `wake` has at most one member, so it costs little.
  if n > 1 then redis.call('ZINTERCARD', n, unpack(unseen)) end
  local gone = W.noted('HDEL', K.groups)
  if gone > 0 and #values == 0 and redis.call('HLEN', K.groups) == gone then events.note('drained', '', '') end
  return any_ready and not meta.paused and not rate.is_throttled()
end
