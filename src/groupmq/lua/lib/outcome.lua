--[[
What a worker reports of the runs it ended. An outcome counts only under the token of the job's current lease: with any
other it changes nothing, and the worker is told. One refused outcome never harms its neighbours.
]]
--- @include "lib/finish"
local outcome = {}
local COMPLETE, RETRY, FAIL, RELEASE = 0, 1, 2, 3
local ACCEPTED, STALE = 1, 0

-- `outcomes`: {COMPLETE, id, token, bytes of result in `blob` or -1}, {RETRY, id, token, delay, yield, reason, stack},
-- {FAIL, id, token, reason, stack}, {RELEASE, id, token}. Returns one status each.
function outcome.apply(outcomes, blob, policy)
  local n = #outcomes
  local ids, gids, statuses, taken = {}, {}, {}, 1
  for i = 1, n do ids[i] = outcomes[i][2] end
  local leases = lease.load(ids)
  for i = 1, n do
    if leases[i] then gids[#gids + 1] = leases[i].gid end
  end
  group.load(gids)
  local recs = outcome.records_to_put_back(outcomes)
  local ended, n_completed = {}, 0
  for i = 1, n do
    local o, l = outcomes[i], leases[i]
    local kind, id = o[1], o[2]
    local result
    if kind == COMPLETE and o[4] >= 0 then
      result = string.sub(blob, taken, taken + o[4] - 1)
      taken = taken + o[4]
    end
    if not l or l.token ~= o[3] or ended[id] then
      statuses[i] = STALE
    else
      ended[id], statuses[i] = true, ACCEPTED
      if kind == COMPLETE then
        n_completed = n_completed + 1
        finish.completed(id, l, result, policy.keep.completed)
      else
        finish.end_run(id, l)
        local s = state.after_run(l)
        if kind == FAIL then
          finish.failed(id, s, o[4], o[5])
        elseif not recs[id] then
          retention.forget(id)
        elseif kind == RETRY then
          finish.retry(id, recs[id], s, { delay = o[4], yield = o[5], reason = o[6], stack = o[7] })
        elseif kind == RELEASE then
          finish.put_back(id, recs[id])
        end
      end
    end
  end
  if n_completed > 0 then W.count('processed', n_completed) end
  return statuses
end

-- The records of jobs that go back to their group; completions, the common case, need none.
function outcome.records_to_put_back(outcomes)
  local ids, recs = {}, {}
  for i = 1, #outcomes do
    local kind = outcomes[i][1]
    if kind == RETRY or kind == RELEASE then ids[#ids + 1] = outcomes[i][2] end
  end
  if #ids > 0 then
    local raw = redis.call('HMGET', K.jobs, unpack(ids))
    for i = 1, #ids do recs[ids[i]] = raw[i] end
  end
  return recs
end
