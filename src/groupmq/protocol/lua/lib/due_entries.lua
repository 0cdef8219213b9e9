--[[ The due entries of one sorted set that is ordered by time, as many as this call may handle (lib/budget.lua). ]]
--- @include "lib/clock"
--- @include "lib/seen"
--- @include "lib/horizon"
--- @include "lib/budget"
local due_entries = {}
--- @private

-- Returns the members of `key` that are due, at most `most`, and whether there are more. Passes the horizon the time of
-- the first entry that is left. `cost`: of each entry (lib/budget.lua). `gone`: a set of `n_gone` members that this
-- call removes; they are skipped, because they are still stored until the commit.
function due_entries.take(key, most, cost, gone, n_gone)
  local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
  seen.add(key)
  if not first[1] then return {}, false end
  if tonumber(first[2]) > now then
    horizon.found(tonumber(first[2]))
    return {}, false
  end
  local batch = budget.share(most)
  local entries = redis.call('ZRANGE', key, 0, batch + (n_gone or 0), 'WITHSCORES')
  local ripe, more = {}, false
  for i = 1, #entries, 2 do
    local time = tonumber(entries[i + 1])
    if not (gone and gone[entries[i]]) then
      if time > now or #ripe == batch then
        horizon.found(time)
        more = time <= now
        break
      end
      ripe[#ripe + 1] = entries[i]
    end
  end
  budget.spend(cost * #ripe)
  return ripe, more
end
