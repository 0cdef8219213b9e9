--[[
Take: grant leases for the next jobs (lib/choose.lua), as far as turns and rates allow.

A worker with short handlers asks for several jobs of a group at once: the head, and jobs prefetched behind it, to run
one after the other. That costs much less than one call per job. It is done only if its only effect is a short wait of
other groups: the group runs one job at a time and waits for nothing, and the jobs have the priority of the head, never
ran, have no ttl, and may run again if their worker dies before it is known whether they had started.

For a handler of batches (lib/filling.lua) the same jobs start at once. If the worker dies, each of them is charged an
attempt, and then runs alone, because it has run before: so the job that killed the worker is found.
]]
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/whole"
--- @include "lib/meta"
--- @include "lib/record"
--- @include "lib/read_records"
--- @include "lib/call"
--- @include "lib/bodies"
--- @include "lib/writes"
--- @include "lib/horizon"
--- @include "lib/group"
--- @include "lib/members"
--- @include "lib/reserve"
--- @include "lib/choose"
--- @include "lib/lease"
--- @include "lib/lease_changes"
--- @include "lib/state"
--- @include "lib/retention"
--- @include "lib/starts"
--- @include "lib/turn"
--- @include "lib/events"
--- @include "lib/measure"
--- @include "transitions/grant"
local take_jobs
--- @private
local NOTHING = { {}, 0, {}, {} }

local function has_rows() return not (rules.round_robin or rules.ageing or rules.exclusive) end

-- Take up to `n` heads and the jobs prefetched behind them, `most` jobs in all; if these are fewer than `fill`,
-- prefetch further heads.
local function grant(n, row, most, who, more_due, fill)
  local is_fit = reserve.fitness(who.policy.max_attempts)
  local wait, stage = who.together, who.confirms and lease.GRANTED or lease.BEGUN
  local fresh, large, terms_of = lease_changes.fresh(stage), meta.large, record.terms
  local groups, lengths, ids, left, full, unfilled = choose.jobs(n, row, most, more_due, fill, is_fit, wait)
  local short = #groups < n
  if #ids == 0 then return NOTHING, {}, left, short end
  local recs, last = read_records(ids, n)
  if full then last = 0 end -- heads of other groups had no room: prefetch nothing
  local states, raw_states = state.load(ids)
  local taken, terms, found, found_states, rows = {}, {}, {}, {}, {}
  local started_ids, gids, attempts, worker, could_start = {}, {}, {}, who.worker, {}
  local default, has_states, m, n_rows, n_started, first = who.policy.max_attempts, raw_states[1] ~= nil, 0, 0, 0, 1
  for r = 1, #groups do
    local g, id, rec, s = groups[r], ids[first], recs[first], states[first]
    if rec == nil then rec = redis.call('HGET', K.jobs, id) end
    if rec and (not large or bodies.bring(id, rec, m + 1)) then
      local since, max, has_ttl = terms_of(rec)
      m, n_rows = m + 1, n_rows + 1
      taken[m], found[m], found_states[m] = id, rec, raw_states[first]
      if s or r > n then
        terms[m] = lease_changes.terms(g.id, worker, s, r > n and lease.RESERVED or stage)
      else
        terms[m] = lease_changes.terms_of_fresh(fresh, g.id, worker)
      end
      if r <= n then
        n_started = n_started + 1
        started_ids[n_started], gids[n_started], attempts[n_started] = id, g.id, s and s[ATTEMPTS] + 1 or 1
      end
      if not s then could_start[#could_start + 1] = since end
      if meta.ttls and has_ttl then W.zrem(K.expiring, id) end -- it has started
      local head = m
      -- The outcome of a job that may run only once must be reported at once, so nothing is prefetched behind it.
      if lengths[r] > 1 and not s and (max > 0 and max or default) > 1 then
        local ahead = lease_changes.terms(g.id, worker, false, wait and stage or lease.FOLLOWS)
        for i = first + 1, math.min(first + lengths[r] - 1, last) do
          rec = recs[i]
          if not rec or states[i] then break end
          since, max, has_ttl = terms_of(rec)
          if (has_ttl and not wait) or (max > 0 and max or default) == 1 then break end
          if large and not bodies.bring(ids[i], rec, m + 1) then break end
          m = m + 1
          taken[m], found[m], terms[m] = ids[i], rec, ahead
          if wait then
            n_started = n_started + 1
            started_ids[n_started], gids[n_started], attempts[n_started] = ids[i], g.id, 1
            if has_ttl then W.zrem(K.expiring, ids[i]) end
          end
          if has_states then found_states[m] = false end
          could_start[#could_start + 1] = since
        end
        members.follow(g, m - head)
        if g.limit > 1 then group.touch(g) end -- no group: the next of these jobs may start
      end
      rows[n_rows] = m - head + 1
    else
      -- Its record, or its data, was deleted from outside. The group continues with its next job.
      g.running = g.running - 1
      group.touch(g)
      retention.lose(id)
      measure.count('lost', 1)
    end
    first = first + lengths[r]
  end
  if m == 0 then return NOTHING, {}, left, short end
  horizon.put(now + who.lease)
  measure.waits(could_start)
  if n_started > 0 then events.give('active', started_ids, gids, attempts, worker) end
  local fence = lease_changes.grant(taken, terms, whole(now + who.lease))
  if #groups > n then reserve.took(worker) end
  local jobs = { taken, fence, found_states, found, call.brought }
  return jobs, n_rows < m and rows or {}, left or #groups > n or unfilled, short
end

-- Take up to `n` jobs that start now, and prefetch others. Returns the jobs as the client reads them: ids, the first
-- fence (fences are consecutive), states ({} = no job has run yet), records, data that is kept beside them
-- (lib/bodies.lua); how many jobs of each group were taken together, {} = one each; whether a worker that asks now
-- would get more; and the epoch of the worker's turn. `who`: the arguments of advance. `more_due`: delayed jobs are due
-- that have not joined their groups yet (lib/choose.lua).
function take_jobs(n, who, more_due)
  if meta.paused then n = 0 end
  local allowed, throttled = n > 0 and turn.allowance(n, who.worker, who.batch, who.epoch) or n, nil
  local mine = allowed == n
  -- max_stalled = 0 means "never redeliver after a crash", so nothing is prefetched.
  local ahead = has_rows() and who.policy.max_stalled ~= 0
  if rules.exclusive then who.together = nil end -- a turn counts its jobs one by one
  local row = (ahead or who.together) and who.row or 1
  local fill = ahead and reserve.size(who) or 0
  local most = math.max(allowed * row, fill)
  if most > 0 and rules.rate then most, throttled = starts.allowance(most) end
  local jobs, rows, left, short = NOTHING, {}, false, false
  if most > 0 then jobs, rows, left, short = grant(allowed, row, most, who, more_due, fill) end
  local taken = #jobs[1]
  if rules.rate then
    starts.note(taken)
    if throttled and taken == most then
      starts.throttle(throttled)
      left = false
    end
  end
  if short and not left and not throttled then
    reserve.ask(who.worker)
    if has_rows() then reserve.set_idle(who.worker) end
    offer_slot(who, has_rows() and not rules.rate)
  elseif taken > 0 then
    reserve.works(who.worker)
  end
  return jobs, rows, left and mine, turn.took(who.worker, taken, who.lease)
end
