--[[
How many jobs one call may return, or remove, by the bytes of their records, data and results. Payloads may be large: a
call that reads or frees hundreds of large ones would block the server for a long time.
]]
--- @include "lib/keys"
--- @include "lib/bodies"
local room = {}
--- @private
local BYTES = 1048576

-- The first of `ids` that fit together, at least one.
function room.first(ids)
  local left = BYTES
  for i = 1, #ids do
    left = left - redis.call('HSTRLEN', K.jobs, ids[i]) - redis.call('HSTRLEN', K.results, ids[i]) - bodies.size(ids[i])
    if left < 0 and i > 1 then return { unpack(ids, 1, i - 1) } end
  end
  return ids
end
