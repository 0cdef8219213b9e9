--[[
Complete: the most frequent end of a run, for all jobs of a call at once. A call may complete hundreds of jobs, many of
the same group.
]]
--- @include "lib/meta"
--- @include "lib/clock"
--- @include "lib/group"
--- @include "lib/state"
--- @include "lib/state_changes"
--- @include "lib/lease"
--- @include "lib/retention"
--- @include "lib/events"
--- @include "lib/measure"
--- @include "lib/breaker_changes"
--- @include "lib/unique"
local complete_jobs, cut_results
--- @private
local NONE = {}

-- The return value of each completed job, false = none. `sizes`: their bytes in `blob`, -1 = none.
function cut_results(blob, sizes)
  local results, from = {}, 1
  for i = 1, #sizes do
    local size = sizes[i]
    results[i] = size >= 0 and (size == #blob and blob or string.sub(blob, from, from + size - 1))
    if size > 0 then from = from + size end
  end
  return results
end

-- Store a completed job that is kept.
local function keep_one(id, l, result)
  local s = lease.state_after(l)
  s[FINISHED] = now
  state_changes.save(id, s)
  if result then state_changes.save_result(id, result) end
  retention.finished('completed', id)
end

-- Complete jobs reported by `worker`. `leases`: as lease_changes.redeem returns them; `results`: the return values of
-- the jobs (false = none); `keep`: how many completed jobs are kept.
function complete_jobs(ids, leases, results, keep, worker)
  local n, gids, attempts, sizes, prefetched, any_prefetched = #ids, leases.gids, nil, nil, {}, false
  local started, attempts_before, stages, FOLLOWS = leases.started, leases.attempts, leases.stages, lease.FOLLOWS
  local g, gid_before, ended, behind = nil, nil, 0, 0
  for i = 1, n do
    local gid, stage = gids[i], stages[i]
    local is_prefetched, same = stage >= FOLLOWS, gid == gid_before
    if same then
      ended = ended + 1
    else
      if g then group.free(g, ended) end
      g, gid_before, ended = group.get(gid), gid, 1
      if g.failures then breaker_changes.succeeded(g) end
    end
    -- Jobs of one group that end together ran one after the other: their total time is recorded for the first one. For
    -- a job prefetched as the head of another group, it is only known that its run was short.
    local is_behind = stage == lease.RESERVED or (same and is_prefetched)
    if is_behind then behind = behind + 1 else measure.run(now - started[i]) end
    prefetched[i], any_prefetched = is_prefetched and 1 or 0, any_prefetched or is_prefetched
    if attempts_before[i] > 0 then
      attempts = attempts or {}
      attempts[i] = attempts_before[i] + 1
    end
    local result = results and results[i]
    if result and not rules.silent then
      sizes = sizes or {}
      sizes[i] = events.result(result, keep < 0 or keep >= n)
    end
    if keep ~= 0 then keep_one(ids[i], lease.decode(leases.raw[i]), result) end
  end
  group.free(g, ended)
  if meta.uniques then unique.ended(ids) end
  if behind > 0 then measure.run(0, behind) end
  if keep == 0 then
    retention.forget_all(ids)
    for i in pairs(attempts or NONE) do state_changes.forget(ids[i]) end
  end
  events.completed(ids, gids, attempts, sizes, any_prefetched and prefetched, worker)
end
