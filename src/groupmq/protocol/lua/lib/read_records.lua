--[[
Read the records of chosen jobs in pages, within a bound: hundreds of large records would fill the memory of the server
and of the worker.
]]
--- @include "lib/keys"
--- @include "lib/meta"
local read_records
--- @private
local PAGE, ROOM = 64, 1048576
local SMALL_PAGE = 2 -- in a queue with large jobs

-- Returns the records (nil = not read) of `ids`, of which `n` start now, and up to which index prefetched jobs have room.
function read_records(ids, n)
  local recs, page, room, at = {}, meta.large and SMALL_PAGE or math.max(n, PAGE), ROOM, 0
  while at < #ids and room > 0 do
    local found = redis.call('HMGET', K.jobs, unpack(ids, at + 1, math.min(at + page, #ids)))
    local enough = at + #found
    for i = 1, #found do
      local rec = found[i]
      recs[at + i] = rec
      if rec then room = room - #rec end
      if room <= 0 and enough > at + i then enough = at + i end
    end
    at = enough
  end
  return recs, at
end
