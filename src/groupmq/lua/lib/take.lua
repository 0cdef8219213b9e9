--[[
Taking jobs: from the ready groups, in their order, the head of each. A group that may run more of its jobs at once
rejoins the candidates at its new place, so nobody drains one group while others wait.
]]
--- @include "lib/group"
--- @include "lib/lease"
--- @include "lib/state"
local take = {}

-- Candidates are kept worst first, so that the best is popped off the end.
local function insert(candidates, g)
  local lo, hi = 1, #candidates + 1
  while lo < hi do
    local mid = math.floor((lo + hi) / 2)
    if candidates[mid].score > g.score then lo = mid + 1 else hi = mid end
  end
  table.insert(candidates, lo, g)
end

-- Ready groups, this call's own changes included, enough for `n` jobs and one more to know whether work is left.
local function ready_groups(n)
  local mine = group.touched()
  local stored = redis.call('ZRANGE', K.ready, 0, n + #mine, 'WITHSCORES')
  local gids = {}
  for i = 1, #stored, 2 do gids[#gids + 1] = stored[i] end
  group.load(gids)
  local candidates = {}
  for i = #gids, 1, -1 do
    local g = group.get(gids[i])
    if not g.touched then
      g.at, g.score = 'ready', tonumber(stored[2 * i])
      candidates[#candidates + 1] = g
    end
  end
  for i = 1, #mine do
    if mine[i].stale then group.refresh(mine[i]) end
    if mine[i].place == 'ready' then insert(candidates, mine[i]) end
  end
  return candidates
end

-- Choose up to `n` jobs. Returns parallel lists of groups and ids, and whether ready groups were left over.
local function choose(n)
  local candidates = ready_groups(n)
  local groups, ids = {}, {}
  while #ids < n and #candidates > 0 do
    local g = table.remove(candidates)
    group.look_ahead(g, math.min(g.limit - g.running, n - #ids))
    group.refresh(g)
    if g.place == 'ready' then
      local member = group.head(g)
      group.drop(g, member)
      g.running = g.running + 1
      groups[#groups + 1], ids[#ids + 1] = g, record.id_of(member)
      group.refresh(g)
      if g.place == 'ready' then insert(candidates, g) end
    else
      group.touch(g) -- a stale entry in `ready`: settling mends it
    end
  end
  return groups, ids, #candidates > 0
end

-- The jobs as the client reads them: id, token, state, record, flat.
function take.jobs(n, worker, lease_ms)
  if n <= 0 or meta.paused then return {}, {}, {}, false end
  local groups, ids, left = choose(n)
  if #ids == 0 then return {}, {}, {}, left end
  local recs = redis.call('HMGET', K.jobs, unpack(ids))
  local states, raw_states = state.load(ids)
  local reply, taken, tokens = {}, {}, {}
  for i = 1, #ids do
    local g, id = groups[i], ids[i]
    if recs[i] then
      local token = lease.grant(id, g.id, worker, states[i], lease_ms)
      local at = #reply
      reply[at + 1], reply[at + 2], reply[at + 3], reply[at + 4] = id, token, raw_states[i] or '', recs[i]
      taken[#taken + 1], tokens[#tokens + 1] = id, token
    else
      -- Its record was deleted behind our back; the group goes on with the next one.
      g.running = g.running - 1
      group.touch(g)
      W.hdel(K.state, id)
      W.count('lost', 1)
    end
  end
  return reply, taken, tokens, left
end
