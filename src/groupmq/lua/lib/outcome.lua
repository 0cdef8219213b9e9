--[[
What a worker reports of the runs it ended. An outcome counts only under the token of the job's current lease: with any
other it changes nothing, and the worker is told. One refused outcome never harms its neighbours.
]]
--- @include "lib/finish"
local outcome = {}
--- @private
local RETRY, FAIL, RELEASE, LIMITED, BEGIN = 1, 2, 3, 4, 5
local ACCEPTED, STALE = 1, 0

-- Load the groups that stored leases are of.
local function load_groups(leases, count)
  local gids, n, last = {}, 0, nil
  for i = 1, count do
    local gid = leases[i] and lease.group_of(leases[i])
    if gid and gid ~= last then
      n, last = n + 1, gid
      gids[n] = gid
    end
  end
  group.load(gids)
end

-- Completed jobs, the common case, in columns: ids, tokens, bytes of result in `blob` or -1 (false = nobody has one).
-- Returns one status each.
function outcome.complete(completed, blob, keep, worker)
  local ids, tokens, sizes = completed[1], completed[2], completed[3]
  local n = #ids
  if n == 0 then return {} end
  local stored, over = lease.stored(ids), lease.over
  load_groups(stored, n)
  local statuses, accepted, from, l = {}, 0, 1, nil
  for i = 1, n do
    local id, raw, size, result = ids[i], stored[i], sizes and sizes[i] or -1, nil
    if raw then l = lease.decode(raw, l) end
    if size >= 0 then
      result = string.sub(blob, from, from + size - 1)
      from = from + size
    end
    if raw and l.token == tokens[i] and not over[id] then
      statuses[i] = ACCEPTED
      accepted = accepted + 1
      finish.completed(id, l, result, keep, n, worker)
    else
      statuses[i] = STALE
    end
  end
  if accepted < n then W.count('lease_lost', n - accepted) end
  if accepted > 0 then
    W.count('processed', accepted)
    if keep == 0 then retention.keeps_nothing('completed') end
  end
  return statuses
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
-- Returns one status each.
function outcome.apply(outcomes)
  local ids, statuses = {}, {}
  for i = 1, #outcomes do ids[i] = outcomes[i][2] end
  if #ids == 0 then return statuses end
  load_groups(lease.stored(ids), #ids)
  local leases = lease.load(ids)
  local recs = redis.call('HMGET', K.jobs, unpack(ids))
  for i = 1, #ids do
    local o, id = outcomes[i], ids[i]
    local l = leases[i] and lease.current(id, leases[i])
    if not (l and l.token == o[3]) then
      statuses[i] = STALE
      -- That a run has begun may be said by a call that is overtaken by the one that ends it: nothing is lost then.
      if o[1] ~= BEGIN then W.count('lease_lost', 1) end
    else
      statuses[i] = ACCEPTED
      if o[1] ~= BEGIN then
        conclude(o, id, l, recs[i])
      elseif l.ahead then
        finish.begun(id, l)
        lease.begin(id, l)
      end
    end
  end
  return statuses
end
