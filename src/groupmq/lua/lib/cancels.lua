--[[
Runs that are to be stopped: job id -> token of the run, in `cancels`. The worker is told by mail, stops the handler and
reports; until then the job is active and its group waits. If the worker is gone, the end of the lease does it.
]]
--- @include "lib/keys"
--- @include "lib/writes"
--- @include "lib/lease"
local cancels = { REASON = 'cancelled' }
--- @private
local any

local function exist()
  if any == nil then any = redis.call('HLEN', K.cancels) > 0 end
  return any
end

-- Whether the current run of `id` is to be stopped.
function cancels.has(id) return exist() and redis.call('HEXISTS', K.cancels, id) == 1 end

-- The runs of a worker that are to be stopped: id, token, flat. All of them, not only those it names: a job may be on
-- its way to it just now.
function cancels.of(worker)
  local found = {}
  if not exist() then return found end
  local all = redis.call('HGETALL', K.cancels)
  for i = 1, #all, 2 do
    local raw = redis.call('HGET', K.leases, all[i])
    local l = raw and lease.decode(raw)
    if l and lease.worker(l) == worker and l.token == tonumber(all[i + 1]) then
      found[#found + 1] = all[i]
      found[#found + 1] = l.token
    end
  end
  return found
end

-- With the run ends the wish to stop it.
W.before_commit[#W.before_commit + 1] = function()
  if next(lease.over) == nil or not exist() then return end
  for id in pairs(lease.over) do W.hdel(K.cancels, id) end
end
