--[[
Repair entries that end by time: the failures that breakers count (lib/breaker_changes.lua), and ids that stay taken
(lib/unique.lua).
]]
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/whole"
--- @include "lib/meta"
--- @include "lib/writes"
--- @include "lib/group"
--- @include "lib/find"
--- @include "lib/unique"
--- @include "lib/repair/repair"
--- @private

-- Delete the entry of a group and close its breaker.
local function drop(gid)
  local g = group.get(gid)
  W.hdel(K.breakers, gid)
  W.zrem(K.breaking, gid)
  W.zrem(K.opened, gid)
  g.failures, g.opened, g.at = nil, nil, 'unknown'
  group.touch(g)
end

-- A group must be listed as open if and only if its breaker is open. The time at which it opened is lost, so the
-- current time is stored.
local function list(gid, raw)
  local is_open = select(2, struct.unpack('>I4I6', raw)) > 0
  local listed = redis.call('ZSCORE', K.opened, gid)
  if is_open and not listed then
    repair.report('open breaker that is not listed', gid)
    W.zadd(K.opened, whole(now), gid)
  elseif listed and not is_open then
    repair.report('closed breaker that is listed as open', gid)
    W.zrem(K.opened, gid)
  end
end

-- Every entry must be readable and have an end, and the flag that makes calls read it must be set.
function repair.breakers(gids)
  if gids[1] and not meta.breakers then
    meta.breakers = true
    repair.report('failures in a row that no call looks for', 'breakers')
  end
  for i = 1, #gids do
    local raw, ends = redis.call('HGET', K.breakers, gids[i]), redis.call('ZSCORE', K.breaking, gids[i])
    if not raw or #raw ~= 10 then
      repair.report('failures in a row that cannot be read', gids[i])
      drop(gids[i])
    elseif not ends then
      repair.report('failures in a row without an end', gids[i])
      W.zadd(K.breaking, whole(now), gids[i])
    end
    if raw and #raw == 10 then list(gids[i], raw) end
  end
end

-- The entry of an id that stays taken must be readable, and must have an end if and only if its job has ended.
function repair.uniques(ids)
  if ids[1] and not meta.uniques then
    meta.uniques = true
    repair.report('taken ids that no call looks for', 'uniques')
  end
  for i, job in ipairs(find.jobs(ids)) do
    local id = ids[i]
    local ms, ends = unique.read(redis.call('HGET', K.unique, id))
    local lives = job.state ~= nil and job.state ~= 'completed' and job.state ~= 'failed'
    local listed = tonumber(redis.call('ZSCORE', K.uniques, id) or nil)
    if not ms then
      repair.report('taken id that cannot be read', id)
      unique.free(id)
    elseif lives and (ends > 0 or listed) then
      repair.report('id that would be free before its job has ended', id)
      unique.lives(id)
    elseif not lives and ends == 0 then
      repair.report('id that would be taken for ever', id)
      unique.ended({ id })
    elseif not lives and listed ~= ends and not (job.state == 'failed' and ends <= now and not listed) then
      repair.report('taken id without an end', id)
      W.zadd(K.uniques, whole(ends), id)
    end
  end
end
