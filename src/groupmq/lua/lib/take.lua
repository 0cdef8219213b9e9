--[[
Taking jobs: those that are next (lib/choose.lua), under leases, as far as turns and rates allow.

A worker whose handlers are short asks for rows: behind a head, further jobs of its group, to be run one after the
other. That costs much less than taking each when the one before it has ended. Only where it changes nothing but the
turn of other groups, by a moment: a group that runs one job at a time and waits for nothing, jobs as urgent as the head
that never ran, have no ttl, and may run again if their worker dies before anybody knows whether they had started.
]]
--- @include "lib/choose"
--- @include "lib/lease"
--- @include "lib/state"
--- @include "lib/rate"
--- @include "lib/turn"
--- @include "lib/events"
--- @include "lib/measure"
local take = {}
--- @private
local PAGE, ROOM = 64, 1048576
local NOTHING = { {}, 0, {}, {} }

local has_rows = not (rules.round_robin or rules.ageing or rules.exclusive)

-- The records of the chosen, `n` wanted and those behind them, and up to which place those behind have room: large ones
-- by the hundred would fill the server's memory, and the worker's. Read in pages, for the same reason; nil = not read.
local function records(ids, n)
  local recs, page, room, at = {}, math.max(n, PAGE), ROOM, 0
  while at < #ids and room > 0 do
    local found = redis.call('HMGET', K.jobs, unpack(ids, at + 1, math.min(at + page, #ids)))
    local enough = at + #found
    for i = 1, #found do
      local rec = found[i]
      recs[at + i] = rec
      if rec then room = room - #rec end
      if room <= 0 and enough > at + i then enough = at + i end
    end
    at = enough
  end
  return recs, at
end

-- Take up to `n` jobs, and those behind them, `most` in all, under leases.
local function grant(n, row, most, who)
  local groups, lengths, ids, left = choose.jobs(n, row, most)
  if #ids == 0 then return NOTHING, {}, left end
  local recs, last = records(ids, n)
  local states, raw_states = state.load(ids)
  local taken, terms, found, found_states, rows = {}, {}, {}, {}, {}
  local told, gids, attempts, worker = {}, {}, {}, who.worker
  local default, has_states, m, n_rows, first = who.policy.max_attempts, raw_states[1] ~= nil, 0, 0, 1
  for r = 1, #groups do
    local g, id, rec, s = groups[r], ids[first], recs[first], states[first]
    if rec == nil then rec = redis.call('HGET', K.jobs, id) end
    if rec then
      local since, max, has_ttl = record.terms(rec)
      m, n_rows = m + 1, n_rows + 1
      taken[m], found[m], terms[m], found_states[m] = id, rec, lease.terms(g.id, worker, s, false), raw_states[first]
      told[n_rows], gids[n_rows], attempts[n_rows] = id, g.id, s and s[ATTEMPTS] + 1 or 1
      if not s then measure.wait(now - since) end
      if meta.ttls and has_ttl then W.zrem(K.expiring, id) end -- it has started
      local head = m
      -- One that may run only once is to be reported at once: dead or alive, it must not wait for others.
      if lengths[r] > 1 and not s and (max > 0 and max or default) > 1 then
        local ahead = lease.terms(g.id, worker, false, true)
        for i = first + 1, math.min(first + lengths[r] - 1, last) do
          rec = recs[i]
          if not rec or states[i] then break end
          since, max, has_ttl = record.terms(rec)
          if has_ttl or (max > 0 and max or default) == 1 then break end
          m = m + 1
          taken[m], found[m], terms[m] = ids[i], rec, ahead
          if has_states then found_states[m] = false end
          measure.wait(now - since)
        end
        members.follow(g, m - head)
      end
      rows[n_rows] = m - head + 1
    else
      -- Its record was deleted behind our back; the group goes on with the next one.
      g.running = g.running - 1
      group.touch(g)
      W.hdel(K.state, id)
      W.count('lost', 1)
    end
    first = first + lengths[r]
  end
  if m == 0 then return NOTHING, {}, left end
  horizon.note(now + who.lease)
  events.give('active', told, gids, attempts, worker)
  local token = lease.grant(taken, terms, W.whole(now + who.lease))
  return { taken, token, found_states, found }, n_rows < m and rows or {}, left
end

-- The jobs as the client reads them: ids, the first token (the others follow it), states ({} = all are fresh), records;
-- how many run one after the other, row by row, {} = each by itself; whether a worker that asks now would get more; and
-- the epoch of the worker's turn. `who`: worker, lease, row, policy, batch and epoch, as in advance.
function take.jobs(n, who)
  if meta.paused then n = 0 end
  local allowed, throttled = n, nil
  if n > 0 then allowed = turn.allowance(n, who.worker, who.batch, who.epoch) end
  local mine = allowed == n
  -- Who allows no stall wants no job to run again after its worker has died.
  local row = has_rows and who.policy.max_stalled ~= 0 and who.row or 1
  local most = allowed * row
  if most > 0 and rules.rate then most, throttled = rate.allowance(most) end
  local jobs, rows, left = NOTHING, {}, false
  if most > 0 then jobs, rows, left = grant(allowed, row, most, who) end
  local taken = #jobs[1]
  if rules.rate then
    rate.started(taken)
    if throttled and taken == most then
      rate.throttle(throttled)
      left = false
    end
  end
  return jobs, rows, left and mine, turn.took(who.worker, taken, who.lease)
end
