--[[
Finished jobs are kept up to a number, newest first; what is over goes in the call that made it too many, so the bound
holds at every moment. `keep` maps 'completed' and 'failed' to that number, -1 = no bound. At most TRIM old jobs go
per call: a bound that was lowered far is reached in steps.
]]
--- @include "lib/keys"
--- @include "lib/writes"
--- @include "lib/meta"
--- @include "lib/state"
local retention = { completed = {}, failed = {} }
--- @private
local over = {} -- kinds of which this call keeps nothing: older ones, of a higher bound, go too
local forgotten = W.list('HDEL', K.jobs)
local TRIM = 1000

-- Nothing of the job remains, and its id is free again. `untold`: it never got a state or a result.
function retention.forget(id, untold)
  forgotten[#forgotten + 1] = id
  if meta.notes then
    W.hdel(K.progress, id)
    W.hdel(K.logs, id)
  end
  if not untold then state.forget(id) end
end

-- The same for many that never got one; the list is not to be changed any more.
function retention.forget_all(ids)
  W.all('HDEL', K.jobs, ids)
  if meta.notes then
    W.all('HDEL', K.progress, ids)
    W.all('HDEL', K.logs, ids)
  end
end

function retention.finished(kind, id)
  local list = retention[kind]
  list[#list + 1] = id
end

-- Jobs of this kind are not kept at all any more: those that were go as well.
function retention.keeps_nothing(kind) over[kind] = true end

local function settle(kind, keep)
  local new = retention[kind]
  local skip = 0
  if #new == 0 and not over[kind] then return end
  if keep >= 0 then
    local stored = redis.call('ZCARD', K[kind])
    local excess = stored + #new - keep
    if excess > 0 and stored > 0 then
      local old = redis.call('ZRANGE', K[kind], 0, math.min(excess, TRIM) - 1)
      for i = 1, #old do
        W.zrem(K[kind], old[i])
        retention.forget(old[i])
      end
    end
    skip = math.min(#new, math.max(0, excess - stored))
  end
  for i = 1, skip do retention.forget(new[i]) end
  for i = skip + 1, #new do W.zadd(K[kind], W.whole(meta.next_stamps(1)), new[i]) end
end

function retention.settle(keep)
  settle('completed', keep.completed)
  settle('failed', keep.failed)
end
