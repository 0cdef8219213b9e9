--[[ Repair entries that end by time: the failures that breakers count (lib/breaker_changes.lua). ]]
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/whole"
--- @include "lib/meta"
--- @include "lib/writes"
--- @include "lib/group"
--- @include "lib/mend"
--- @private

-- The entry of a group goes, and its breaker is closed.
local function drop(gid)
  local g = group.get(gid)
  W.hdel(K.breakers, gid)
  W.zrem(K.breaking, gid)
  g.failures, g.opened, g.at = nil, nil, 'unknown'
  group.touch(g)
end

-- Every entry must be readable and end some day, and calls must look for it.
function mend.breakers(gids)
  if gids[1] and not meta.breakers then
    meta.breakers = true
    mend.report('failures in a row that no call looks for', 'breakers')
  end
  for i = 1, #gids do
    local raw, ends = redis.call('HGET', K.breakers, gids[i]), redis.call('ZSCORE', K.breaking, gids[i])
    if not raw or #raw ~= 10 then
      mend.report('failures in a row that cannot be read', gids[i])
      drop(gids[i])
    elseif not ends then
      mend.report('failures in a row without an end', gids[i])
      W.zadd(K.breaking, whole(now), gids[i])
    end
  end
end
