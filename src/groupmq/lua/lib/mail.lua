--[[
Mail to workers: a marker that their heartbeat waits on, so that it comes at once and learns what is new. Only to those
who have said that they live; the mail of one that died goes with its presence.
]]
--- @include "lib/keys"
--- @include "lib/writes"
local mail = {}
--- @private

local function put(worker)
  redis.call('ZCARD', K.mail .. worker) -- of a wrong type, it must stop the call before it writes
  W.zadd(K.mail .. worker, 0, '0')
end

function mail.send(worker)
  if redis.call('HEXISTS', K.workers, worker) == 1 then put(worker) end
end

function mail.send_all()
  for _, worker in ipairs(redis.call('HKEYS', K.workers)) do put(worker) end
end
