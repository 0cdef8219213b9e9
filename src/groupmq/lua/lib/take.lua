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

local has_rows = not (rules.round_robin or rules.ageing or rules.exclusive)

-- The records of the chosen, `n` wanted and those behind them; of these only as many as have room, or large ones by the
-- hundred would fill the server's memory, and the worker's. Read in pages, for the same reason.
local function records(ids, behind, n)
  local recs, room, page = {}, ROOM, math.max(n, PAGE)
  for from = 1, #ids, page do
    local to = math.min(from + page - 1, #ids)
    if room > 0 then
      local found = redis.call('HMGET', K.jobs, unpack(ids, from, to))
      for i = from, to do
        local rec = found[i - from + 1]
        if rec and (room > 0 or not behind[i]) then
          recs[i] = rec
          room = room - #rec
        end
      end
    else
      for i = from, to do
        if not behind[i] then recs[i] = redis.call('HGET', K.jobs, ids[i]) end
      end
    end
  end
  return recs
end

-- Take up to `n` jobs, and those behind them, `most` in all, under leases.
local function grant(n, row, most, who)
  local groups, ids, behind, left = choose.jobs(n, row, most)
  if #ids == 0 then return {}, {}, 0, {}, left end
  local recs = records(ids, behind, n)
  local states, raw_states = state.load(ids)
  local reply, taken, rows, n_taken, n_rows = {}, {}, {}, 0, 0
  local told, gids, attempts, worker = {}, {}, {}, who.worker
  local deadline, default = W.whole(now + who.lease), who.policy.max_attempts
  local cut, ahead -- of the current row: nobody follows any more; the terms for those who do
  horizon.note(now + who.lease)
  for i = 1, #ids do
    local g, id, rec, s, follows = groups[i], ids[i], recs[i], states[i], behind[i]
    local since, max, has_ttl, terms
    if rec then since, max, has_ttl = record.terms(rec) end
    if not follows then
      -- One that may run only once is to be reported at once: dead or alive, it must not wait for others.
      cut, ahead = s or not rec or (max > 0 and max or default) == 1, nil
      terms = rec and lease.terms(g.id, worker, s, false)
    elseif not cut then
      cut = s or not rec or has_ttl or (max > 0 and max or default) == 1
      if not cut then
        ahead = ahead or lease.terms(g.id, worker, false, true)
        terms = ahead
        members.follow(g)
      end
    end
    if terms then
      local token, at = lease.grant(id, terms, deadline), 4 * n_taken
      reply[at + 1], reply[at + 2], reply[at + 3], reply[at + 4] = id, token, raw_states[i] or '', rec
      n_taken = n_taken + 1
      taken[n_taken] = id
      if not s then measure.wait(now - since) end
      if follows then
        rows[n_rows] = rows[n_rows] + 1
      else
        n_rows = n_rows + 1
        rows[n_rows], told[n_rows], gids[n_rows], attempts[n_rows] = 1, id, g.id, s and s[ATTEMPTS] + 1 or 1
        if meta.ttls and has_ttl then W.zrem(K.expiring, id) end -- it has started
      end
    elseif not follows then
      -- Its record was deleted behind our back; the group goes on with the next one.
      g.running = g.running - 1
      group.touch(g)
      W.hdel(K.state, id)
      W.count('lost', 1)
    end
  end
  if n_rows > 0 then events.give('active', told, gids, attempts, worker) end
  return reply, taken, reply[2] or 0, n_rows < n_taken and rows or {}, left
end

-- The jobs as the client reads them: id, token, state, record, flat; their ids and the first token; how many run one
-- after the other, row by row, {} = each by itself; whether a worker that asks now would get more; and the epoch of the
-- worker's turn. `who`: worker, lease, row, policy, batch and epoch, as in advance.
function take.jobs(n, who)
  if meta.paused then n = 0 end
  local allowed, throttled = n, nil
  if n > 0 then allowed = turn.allowance(n, who.worker, who.batch, who.epoch) end
  local mine = allowed == n
  -- Who allows no stall wants no job to run again after its worker has died.
  local row = has_rows and who.policy.max_stalled ~= 0 and who.row or 1
  local most = allowed * row
  if most > 0 and rules.rate then most, throttled = rate.allowance(most) end
  local reply, ids, token, rows, left = {}, {}, 0, {}, false
  if most > 0 then reply, ids, token, rows, left = grant(allowed, row, most, who) end
  if rules.rate then
    rate.started(#ids)
    if throttled and #ids == most then
      rate.throttle(throttled)
      left = false
    end
  end
  return reply, ids, token, rows, left and mine, turn.took(who.worker, #ids, who.lease)
end
