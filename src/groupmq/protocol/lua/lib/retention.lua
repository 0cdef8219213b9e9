--[[
Finished jobs are kept up to a number, the newest ones. The call that exceeds it deletes the excess, so the bound
holds at every moment. `keep` maps 'completed' and 'failed' to that number, -1 = no bound. Beyond as many as have just
finished, one call deletes at most TRIM old jobs: a bound that was lowered far is reached in steps.
0 does not apply to stored jobs: the jobs that this call ends are forgotten, and jobs that other processes keep stay.
]]
--- @include "lib/call"
--- @include "lib/keys"
--- @include "lib/whole"
--- @include "lib/seen"
--- @include "lib/meta"
--- @include "lib/writes"
--- @include "lib/state_changes"
local retention = {}
--- @private
local TRIM = 60

-- Delete everything that is stored of the job. Its id can be used again.
function retention.forget(id)
  W.hdel(K.jobs, id)
  if meta.notes then
    W.hdel(K.progress, id)
    W.hdel(K.logs, id)
  end
  state_changes.forget(id)
end

-- The same for many jobs without state and result. The caller must not change the list any more.
function retention.forget_all(ids)
  W.all('HDEL', K.jobs, ids)
  if meta.notes then
    W.all('HDEL', K.progress, ids)
    W.all('HDEL', K.logs, ids)
  end
  if meta.loose then
    for i = 1, #ids do state_changes.forget_history(ids[i]) end
  end
end

-- `call.completed`, `call.failed`: the jobs that this call has ended.
function retention.finished(kind, id)
  local list = call[kind] or {}
  call[kind] = list
  list[#list + 1] = id
end

local function settle_kind(kind, keep)
  local new, skip, dropped = call[kind], 0, 0
  if keep == 0 then
    skip = #new
  elseif keep > 0 then
    local stored = redis.call('ZCARD', K[kind])
    seen.add(K[kind])
    local excess = stored + #new - keep
    if excess > 0 and stored > 0 then
      local old = redis.call('ZRANGE', K[kind], 0, math.min(excess, #new + TRIM) - 1)
      for i = 1, #old do
        W.zrem(K[kind], old[i])
        retention.forget(old[i])
      end
      dropped = #old
    end
    skip = math.min(#new, math.max(0, excess - stored))
    if kind == 'failed' then call.dropped = dropped + skip end
  end
  for i = 1, skip do retention.forget(new[i]) end
  for i = skip + 1, #new do W.zadd(K[kind], whole(meta.next_stamps(1)), new[i]) end
end

function retention.settle(keep)
  if call.completed then settle_kind('completed', keep.completed) end
  if call.failed then settle_kind('failed', keep.failed) end
end
