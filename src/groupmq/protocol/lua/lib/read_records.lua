--[[
Read the records of chosen jobs in pages, within a bound on the bytes of records and of data that is kept beside them:
hundreds of large jobs would fill the memory of the server and of the worker.
]]
--- @include "lib/keys"
--- @include "lib/meta"
--- @include "lib/record"
--- @include "lib/bodies"
local read_records
--- @private
local PAGE, ROOM = 64, 1048576

-- Returns the records (nil = not read) of `ids`, of which `n` start now, and up to which index prefetched jobs have
-- room.
function read_records(ids, n)
  local recs, page, room, at, large = {}, math.max(n, PAGE), ROOM, 0, meta.large
  while at < #ids and room > 0 do
    local found = redis.call('HMGET', K.jobs, unpack(ids, at + 1, math.min(at + page, #ids)))
    local enough = at + #found
    for i = 1, #found do
      local rec = found[i]
      recs[at + i] = rec
      local is_large = large and rec and record.is_beside(rec)
      if rec then room = room - (is_large and bodies.size(ids[at + i]) or #rec) end
      -- The last record may exceed the room; large data may not.
      if room <= 0 then enough = math.min(enough, room < 0 and is_large and at + i - 1 or at + i) end
    end
    at = enough
  end
  return recs, at
end
