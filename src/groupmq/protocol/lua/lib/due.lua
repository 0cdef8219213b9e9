--[[
The work that becomes due with time: delayed jobs join their groups, parked groups become ready, expired leases are
taken back, and jobs past their ttl fail. One call handles a limited number of each (lib/budget.lua). If more is due,
the horizon is set to now, and the caller calls again at once.
]]
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/meta"
--- @include "lib/record"
--- @include "lib/writes"
--- @include "lib/horizon"
--- @include "lib/due_entries"
--- @include "lib/group"
--- @include "lib/lease"
--- @include "lib/lease_changes"
--- @include "lib/state"
--- @include "lib/retention"
--- @include "lib/find"
--- @include "lib/end_run"
--- @include "transitions/remove"
--- @include "lib/stopping"
--- @include "lib/offer"
--- @include "transitions/fail"
--- @include "transitions/promote"
--- @include "transitions/release"
--- @include "transitions/stall"
local due = {}
--- @private
local JOINS, MOVES, ENDS = 60, 60, 30 -- per call: delayed jobs; parked groups; jobs or leases that end
local COST_OF_END = 2 -- of lib/budget.lua

local function records(ids) return #ids > 0 and redis.call('HMGET', K.jobs, unpack(ids)) or {} end

local function groups_of(recs)
  local gids = {}
  for i = 1, #recs do
    if recs[i] then gids[#gids + 1] = record.group_of(recs[i]) end
  end
  return gids
end

-- Move delayed jobs that are due into their groups, by their sort keys. Returns how many, and whether more are due;
-- if so, the job that sorts first in a group may not have joined it yet. `expired`: the jobs that this call has failed,
-- as due.overdue returns them; they must not be promoted as well.
function due.promote(expired)
  local ids, more = due_entries.take(K.delayed, JOINS, 1, expired.ids, expired.n)
  local recs = records(ids)
  group.load(groups_of(recs))
  local promoted = 0
  for i = 1, #ids do
    if recs[i] then
      promote_job(ids[i], recs[i])
      promoted = promoted + 1
    else
      W.zrem(K.delayed, ids[i]) -- its record was deleted from outside
    end
  end
  return promoted, more
end

function due.unpark()
  local gids = due_entries.take(K.parked, MOVES, 1)
  group.load(gids)
  for i = 1, #gids do
    local g = group.get(gids[i])
    g.at = 'unknown' -- it has an entry in `parked`, whatever its stored value says
    group.touch(g)
  end
  return #gids
end

-- Whether the job was granted by an add (lib/offer.lua) and no worker has received it, so that it has not begun.
local function was_not_received(id, l)
  local worker, granted, fence = offer.granted()
  return granted == id and fence == l.fence and offer.is_unread(worker)
end

-- Take back expired leases, as due.take_back does.
function due.expire(policy)
  return due.take_back((due_entries.take(K.active, ENDS, COST_OF_END)), policy)
end

-- Take back the leases of `ids`. Returns the jobs that had begun, flat: id, group, what happens next
-- (transitions/stall.lua).
function due.take_back(ids, policy)
  if #ids == 0 then return {} end
  local leases, recs = lease.load(ids), records(ids)
  local stalled = {}
  for i = 1, #ids do
    local id, l, rec = ids[i], leases[i], recs[i]
    if l and rec and (l.prefetched or was_not_received(id, l)) then
      release_unstarted(id, l, rec)
    elseif l and rec then
      local n, next_step = #stalled, stall_job(id, l, rec, policy)
      stalled[n + 1], stalled[n + 2], stalled[n + 3] = id, l.gid, next_step
    elseif l then
      end_run(id, l)
      retention.lose(id) -- its record was deleted from outside: nothing of the job may stay
    elseif not lease.is_over(id) then
      lease_changes.revoke(id)
    end
  end
  return stalled
end

-- Free the slots of runs whose job an operator has ended and whose lease is over, even if their handlers still run.
function due.stop()
  if not meta.stopping then return end
  if meta.stopping > now then return horizon.found(meta.stopping) end
  stopping.expire((due_entries.take(K.stopping, ENDS, COST_OF_END)))
end

-- Fail jobs past their ttl. This must run before promotion, so that none of them joins its group first. A queue that
-- never had a ttl reads nothing. Returns the jobs that failed, how many jobs were checked, and whether more are due.
-- The jobs that failed are {ids = set, n = how many, list = flat: id, group, 1 if the job blocks its group}.
function due.overdue()
  local expired = { ids = {}, n = 0, list = {} }
  if not meta.ttls then return expired, 0, false end
  local ids, more = due_entries.take(K.expiring, ENDS, COST_OF_END)
  local found, list = find.jobs(ids), expired.list
  for i = 1, #found do
    local job = found[i]
    if job.state == 'waiting' or job.state == 'delayed' then
      detach_job(job)
      local s, n = state.load({ job.id })[1] or state.fresh(), #list
      local blocks = fail_job(job.id, job.rec, s, { reason = 'expired: not started within its ttl' })
      expired.ids[job.id], expired.n = true, expired.n + 1
      list[n + 1], list[n + 2], list[n + 3] = job.id, record.group_of(job.rec), blocks and 1 or 0
    else
      W.zrem(K.expiring, job.id)
    end
  end
  return expired, #ids, more
end

-- Run all of these steps, if anything can be due by now. Returns the stalled jobs and the jobs past their ttl, both
-- flat, whether more jobs are past their ttl, and whether more delayed jobs are due.
function due.everything(policy)
  if not horizon.is_reached() then return {}, {}, false, false end
  horizon.look_at_all()
  local stalled = due.expire(policy)
  due.stop()
  local expired, _, more_overdue = due.overdue()
  local _, more_due = due.promote(expired)
  due.unpark()
  return stalled, expired.list, more_overdue, more_due
end
