--[[
The commonest end of a run, for all jobs of a call at once: hundreds of them come in one, many of the same group.
]]
--- @include "lib/finish"
local complete = {}
--- @private
local NONE = {}

-- A completed job that is kept.
local function keep_one(id, l, result)
  local s = lease.state_after(l)
  s[FINISHED] = now
  state.save(id, s)
  if result then state.save_result(id, result) end
  retention.finished('completed', id)
end

-- Jobs that completed, told by `worker`: their leases, which have been redeemed, as they were stored; what they
-- returned (false = none did); how many completed jobs are kept.
function complete.jobs(ids, leases, results, keep, worker)
  local n, gids, attempts, sizes, aheads, any_ahead = #ids, {}, nil, nil, {}, false
  local g, gid_before, ended, behind, fields = nil, nil, 0, 0, lease.fields
  for i = 1, n do
    local id = ids[i]
    local _, started, attempts_before, _, ahead, gid = fields(leases[i])
    local same = gid == gid_before
    if same then
      ended = ended + 1
    else
      if g then finish.free(g, ended) end
      g, gid_before, ended = group.get(gid), gid, 1
    end
    -- Those of a row that end together ran one after the other: the time of all of them is that of the first.
    if same and ahead == 1 then behind = behind + 1 else measure.run(now - started) end
    gids[i], aheads[i], any_ahead = gid, ahead, any_ahead or ahead == 1
    if attempts_before > 0 then
      attempts = attempts or {}
      attempts[i] = attempts_before + 1
    end
    local result = results and results[i]
    if result and events.on then
      sizes = sizes or {}
      sizes[i] = events.result(result, keep < 0 or keep >= n)
    end
    if keep ~= 0 then keep_one(id, lease.decode(leases[i]), result) end
  end
  finish.free(g, ended)
  if behind > 0 then measure.run(0, behind) end
  if keep == 0 then
    retention.forget_all(ids)
    for i in pairs(attempts or NONE) do state.forget(ids[i]) end
  end
  events.completed(ids, gids, attempts, sizes, any_ahead and aheads, worker)
end
