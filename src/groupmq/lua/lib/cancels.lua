--[[
Runs that are to be stopped: job id -> token of the run, in `cancels`. The worker is told by mail, stops the handler and
reports; until then the job is active and its group waits. If the worker is gone, the end of the lease does it.
]]
--- @include "lib/keys"
--- @include "lib/writes"
local cancels = { REASON = 'cancelled' }
--- @private
local any

local function exist()
  if any == nil then any = redis.call('HLEN', K.cancels) > 0 end
  return any
end

-- Whether the current run of `id` is to be stopped.
function cancels.has(id) return exist() and redis.call('HEXISTS', K.cancels, id) == 1 end

function cancels.forget(id)
  if exist() then W.hdel(K.cancels, id) end
end

-- Those of `ids` that are to be stopped.
function cancels.among(ids)
  local found = {}
  if #ids == 0 or not exist() then return found end
  local tokens = redis.call('HMGET', K.cancels, unpack(ids))
  for i = 1, #ids do
    if tokens[i] then found[#found + 1] = ids[i] end
  end
  return found
end
