--[[
Which jobs are next: from the ready groups, in their order, the head of each. A group that may run more of its jobs at
once rejoins the candidates at its new place, so nobody drains one group while others wait. Behind a head those of its
group that may follow it in a row (lib/take.lua).
]]
--- @include "lib/members"
local choose = {}
--- @private

-- The groups this call has changed are kept apart from the stored order, worst first: the best is popped off the end.
local function insert(changed, g)
  local lo, hi = 1, #changed + 1
  while lo < hi do
    local mid = math.floor((lo + hi) / 2)
    if changed[mid].score > g.score then lo = mid + 1 else hi = mid end
  end
  table.insert(changed, lo, g)
end

-- The stored order: groups that this call has not changed, best first, and one more than needed to know of work left.
local function untouched(n, mine)
  local changed = 0
  for i = 1, #mine do
    if mine[i].at ~= 'none' then changed = changed + 1 end -- it may be in `ready`, and is to be passed over there
  end
  local stored = redis.call('ZRANGE', K.ready, 0, n + changed, 'WITHSCORES')
  local gids, scores, count = {}, {}, 0
  for i = 1, #stored, 2 do
    if count > n then break end
    if not group.is_touched(stored[i]) then
      count = count + 1
      gids[count], scores[count] = stored[i], tonumber(stored[i + 1])
    end
  end
  group.load(gids)
  return gids, scores
end

-- Of the groups this call has changed, those that can be among the first `n`, worst first.
local function changed_groups(mine, worst)
  local changed = {}
  for i = 1, #mine do
    local g = mine[i]
    if g.stale or not g.place then group.refresh(g) end
    if g.place == 'ready' and g.score < worst then insert(changed, g) end
  end
  return changed
end

-- Take the head of a ready group out, and see how many may follow it; `n` jobs are still wanted. Returns the member,
-- and how many they are with it.
local function pop(g, n, row)
  if row > 1 and g.limit == 1 and not g.gated then return members.pop_row(g, row) end
  local free = g.limit - g.running
  return members.pop(g, free == 1 and 1 or math.min(free, n)), 1
end

-- Choose up to `n` jobs, and behind each as many as make a row of `row`, `most` in all: what a rate leaves goes to
-- heads first, also because some of those behind them may not follow after all. Returns the group and the length of
-- each row, the ids of all, and whether ready groups may be left over.
function choose.jobs(n, row, most)
  local gids, scores = untouched(n, group.touched())
  local changed = changed_groups(group.touched(), scores[n] or math.huge)
  local groups, lengths, ids, count, taken, next_up = {}, {}, {}, 0, 0, 1
  while taken < n and count < most do
    local g = changed[#changed]
    if gids[next_up] and (not g or scores[next_up] < g.score) then
      g = group.get(gids[next_up])
      next_up = next_up + 1
      -- What its value says is what refresh would say, unless a hold may have run out.
      if g.at == 'ready' then g.place = 'ready' else group.refresh(g) end
    elseif g then
      changed[#changed] = nil
    else
      break
    end
    if g.place == 'ready' then
      local other_heads = n - taken - 1
      local member, length = pop(g, n - taken, math.min(row, most - count - other_heads))
      group.start(g)
      taken = taken + 1
      groups[taken], lengths[taken], ids[count + 1] = g, length, record.id_of(member)
      for i = 2, length do ids[count + i] = record.id_of(g.stored[i]) end
      count = count + length
      group.refresh(g)
      if g.place == 'ready' then insert(changed, g) end
    else
      g.at = 'unknown' -- a stale entry in `ready`: settling mends it
      group.touch(g)
    end
  end
  -- Stale entries (the clock stepped back under a hold) that used up the page say nothing of the groups behind them.
  return groups, lengths, ids, changed[1] ~= nil or gids[next_up] ~= nil or #gids > n
end
