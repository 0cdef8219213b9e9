--[[
What a worker reports of the runs it ended. An outcome counts only under the token of the job's current lease: with any
other it changes nothing, and the worker is told. One refused outcome never harms its neighbours.
]]
--- @include "lib/complete"
--- @include "lib/finish"
local outcome = {}
--- @private
local RETRY, FAIL, RELEASE, LIMITED, BEGIN = 1, 2, 3, 4, 5

-- Load the groups that stored leases are of. Those of a row have that of their first; if it is not here, it is loaded
-- when it is needed.
local function load_groups(leases, count)
  local gids, n = {}, 0
  for i = 1, count do
    local raw = leases[i]
    if raw and not lease.is_ahead(raw) then
      n = n + 1
      gids[n] = lease.group_of(raw)
    end
  end
  group.load(gids)
end

-- What the completed returned, job by job, false = nothing.
local function cut(blob, sizes)
  local results, from = {}, 1
  for i = 1, #sizes do
    local size = sizes[i]
    results[i] = size >= 0 and string.sub(blob, from, from + size - 1)
    if size > 0 then from = from + size end
  end
  return results
end

-- Completed jobs, the common case, in columns: ids, tokens, bytes of result in `blob` or -1 (false = nobody has one).
-- Returns the places of those that were refused.
function outcome.complete(completed, blob, keep, worker)
  local ids, leases, refused = lease.redeem(completed[1], completed[2])
  local results = completed[3] and cut(blob, completed[3])
  if refused[1] then
    W.count('lease_lost', #refused)
    results = results and lease.without(results, refused)
  end
  if ids[1] then
    load_groups(leases, #ids)
    complete.jobs(ids, leases, results, keep, worker)
    W.count('processed', #ids)
    if keep == 0 then retention.keeps_nothing('completed') end
  end
  return refused
end

-- What becomes of a job whose run has ended in another way than completing.
local function conclude(o, id, l, rec)
  local cancelled = cancels.has(id)
  finish.end_run(id, l)
  local s = o[1] == RELEASE and lease.state_untold(l) or lease.state_after(l)
  if o[1] == FAIL or o[1] == RETRY then measure.run(now - l.started) end
  if o[1] ~= RELEASE then finish.begun(id, l) end
  if not rec then
    retention.forget(id) -- deleted behind our back: nothing of it may stay
  elseif o[1] == FAIL then
    finish.failed(id, l.gid, s, o[4], o[5])
  elseif cancelled then
    finish.failed(id, l.gid, s, cancels.REASON, '') -- whatever it asks for, it is not to run again
  elseif o[1] == RETRY then
    finish.retry(id, rec, s, { delay = o[4], yield = o[5], reason = o[6], stack = o[7] })
  elseif o[1] == LIMITED then
    finish.limited(id, rec, o[4])
  else
    finish.put_back(id, rec)
  end
end

-- All else there is to say of a run: {RETRY, id, token, delay, yield, reason, stack}, {FAIL, id, token, reason, stack},
-- {RELEASE, id, token}, {LIMITED, id, token, delay}, and of one that was taken ahead {BEGIN, id, token}: it goes on.
-- Appends the places of those that were refused, counted from `before`.
function outcome.apply(outcomes, refused, before)
  local ids = {}
  for i = 1, #outcomes do ids[i] = outcomes[i][2] end
  if #ids == 0 then return end
  load_groups(lease.stored(ids), #ids)
  local leases = lease.load(ids)
  local recs = redis.call('HMGET', K.jobs, unpack(ids))
  for i = 1, #ids do
    local o, id = outcomes[i], ids[i]
    local l = leases[i] and lease.current(id, leases[i])
    if not (l and l.token == o[3]) then
      refused[#refused + 1] = before + i
      -- That a run has begun may be said by a call that is overtaken by the one that ends it: nothing is lost then.
      if o[1] ~= BEGIN then W.count('lease_lost', 1) end
    elseif o[1] ~= BEGIN then
      conclude(o, id, l, recs[i])
    elseif l.ahead then
      finish.begun(id, l)
      lease.begin(id, l)
    end
  end
end
