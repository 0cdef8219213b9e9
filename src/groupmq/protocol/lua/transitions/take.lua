--[[
Take: grant leases for the next jobs (lib/choose.lua). lib/serve.lua decides how many a worker may have.

A worker with short handlers asks for several jobs of a group at once: the head, and jobs prefetched behind it, to run
one after the other. That costs much less than one call per job. lib/prefetch.lua has the rules.

For a handler of batches (lib/filling.lua) the same jobs start at once. If the worker dies, each of them is charged an
attempt, and then runs alone, because it has run before: so the job that killed the worker is found.
]]
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/whole"
--- @include "lib/meta"
--- @include "lib/record"
--- @include "lib/read_records"
--- @include "lib/prefetch"
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
--- @include "lib/events"
--- @include "lib/measure"
local take_next
--- @private
local NOTHING = { {}, 0, {}, {} }

-- `t`, the jobs of this call. As chosen: groups, lengths, ids, recs, states, raw_states, and `last`, the last index at
-- which prefetched jobs have room. As taken: taken (ids), found (records), found_states, leases; and of those that
-- start now: started, gids, attempts. could_start: since when the jobs that never ran could have started.

-- Take the jobs from index `first` to `last` behind the head that was taken as the `m`-th job. Returns how many jobs
-- are taken now, and how many of them start.
local function take_behind(t, g, first, last, m, n_started, who)
  local ids, recs, states, large, together = t.ids, t.recs, t.states, meta.large, who.together
  local taken, found, leases, could_start, head = t.taken, t.found, t.leases, t.could_start, m
  local terms_of, may, default = record.terms, prefetch.job_allows, who.policy.max_attempts
  local value = lease_changes.pack(g.id, who.worker, false, together and t.stage or lease.FOLLOWS)
  for i = first, last do
    local id, rec = ids[i], recs[i]
    if not rec then break end
    local since, max, has_ttl = terms_of(rec)
    if not may(states[i], max, has_ttl, default, together) then break end
    if large and not bodies.bring(id, rec, m + 1) then break end
    m = m + 1
    taken[m], found[m], leases[m] = id, rec, value
    if together then
      n_started = n_started + 1
      t.started[n_started], t.gids[n_started], t.attempts[n_started] = id, g.id, 1
      if has_ttl then W.zrem(K.expiring, id) end
    end
    if t.any_ran then t.found_states[m] = false end
    could_start[#could_start + 1] = since
  end
  members.follow(g, m - head)
  if g.concurrency > 1 then group.touch(g) end -- no group: the next of these jobs may start
  return m, n_started
end

-- Take the chosen jobs; the first `n` heads start now. Returns how many jobs are taken, the sizes of the rows, how many
-- rows there are, and how many jobs start.
local function take_chosen(t, n, who)
  local groups, lengths, ids, recs, states, raw_states = t.groups, t.lengths, t.ids, t.recs, t.states, t.raw_states
  local taken, found, found_states, leases, could_start = t.taken, t.found, t.found_states, t.leases, t.could_start
  local started, gids, attempts, rows, m, n_rows, n_started, first = t.started, t.gids, t.attempts, {}, 0, 0, 0, 1
  local worker, stage, default, large, terms_of = who.worker, t.stage, who.policy.max_attempts, meta.large, record.terms
  local fresh = lease_changes.fresh(stage)
  for r = 1, #groups do
    local g, id, rec, s = groups[r], ids[first], recs[first], states[first]
    if rec == nil then rec = redis.call('HGET', K.jobs, id) end
    if rec and (not large or bodies.bring(id, rec, m + 1)) then
      local since, max, has_ttl = terms_of(rec)
      m, n_rows = m + 1, n_rows + 1
      local head = m
      taken[m], found[m], found_states[m] = id, rec, raw_states[first]
      if s or r > n then
        leases[m] = lease_changes.pack(g.id, worker, s, r > n and lease.RESERVED or stage)
      else
        leases[m] = lease_changes.pack_fresh(fresh, g.id, worker)
      end
      if r <= n then
        n_started = n_started + 1
        started[n_started], gids[n_started], attempts[n_started] = id, g.id, s and s[ATTEMPTS] + 1 or 1
      end
      if not s then could_start[#could_start + 1] = since end
      if meta.ttls and has_ttl then W.zrem(K.expiring, id) end -- it has started
      if lengths[r] > 1 and prefetch.may_lead(s, max, default) then
        local last = math.min(first + lengths[r] - 1, t.last)
        m, n_started = take_behind(t, g, first + 1, last, m, n_started, who)
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
  return m, rows, n_rows, n_started
end

-- Take up to `n` heads and the jobs prefetched behind them, up to `row` of a group and `most` in all; if these are
-- fewer than `fill`, prefetch further heads. Returns the jobs as the client reads them: ids, the first fence (fences
-- are consecutive), states ({} = no job has run yet), records, data that is kept beside them (lib/bodies.lua); how many
-- jobs of each group were taken together, {} = one each; whether a worker that asks now would get more; and whether
-- there were fewer than `n` heads. `who`: the arguments of advance. `more_due`: as for choose.jobs.
function take_next(n, row, most, who, more_due, fill)
  local is_fit = reserve.fitness(who.policy.max_attempts)
  local groups, lengths, ids, left, full, unfilled = choose.jobs(n, row, most, more_due, fill, is_fit, who)
  local short = #groups < n
  if #ids == 0 then return NOTHING, {}, left, short end
  local recs, last = read_records(ids, n)
  if full then last = 0 end -- heads of other groups had no room: prefetch nothing
  local states, raw_states = state.load(ids)
  local t = {
    groups = groups, lengths = lengths, ids = ids, recs = recs, states = states, raw_states = raw_states, last = last,
    any_ran = raw_states[1] ~= nil, stage = who.confirms and lease.GRANTED or lease.BEGUN,
    taken = {}, found = {}, found_states = {}, leases = {}, started = {}, gids = {}, attempts = {}, could_start = {},
  }
  local m, rows, n_rows, n_started = take_chosen(t, n, who)
  if m == 0 then return NOTHING, {}, left, short end
  horizon.put(now + who.lease)
  measure.waits(t.could_start)
  if n_started > 0 then events.give('active', t.started, t.gids, t.attempts, who.worker) end
  local fence = lease_changes.grant(t.taken, t.leases, whole(now + who.lease))
  if #groups > n then reserve.took(who.worker) end
  local jobs = { t.taken, fence, t.found_states, t.found, call.brought }
  return jobs, n_rows < m and rows or {}, left or #groups > n or unfilled, short
end
