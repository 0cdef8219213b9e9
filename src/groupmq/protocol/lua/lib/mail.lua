--[[
Wake-ups for single workers (`mail:<worker>`): a marker that the heartbeat of a worker waits for, so that the next
heartbeat comes at once and gets the requests to this worker. Only workers that have reported their presence get one;
the marker of a worker that died is deleted with its presence.
]]
--- @include "lib/keys"
--- @include "lib/writes"
local mail = {}
--- @private

local function put(worker) W.zadd(K.mail .. worker, 0, '0') end

function mail.send(worker)
  if redis.call('HEXISTS', K.workers, worker) == 1 then put(worker) end
end

function mail.send_all()
  for _, worker in ipairs(redis.call('HKEYS', K.workers)) do put(worker) end
end
