--[[
A job's record, one opaque value in `jobs`:

  place    16 bytes  priority (2), order (8, as order + 2^63), arrival (6), all big-endian: bytes order = start order
  created   6 bytes  milliseconds
  max       2 bytes  max_attempts, 0 = the worker's or queue's
  flags     1 byte   1 = the order was given by the caller
  group     2 bytes of length, then the id; length 0 = no group
  options   2 bytes of length, then what only the client reads
  data      the rest, never looked at here

Members of a group's zset are place .. id. record.py reads and writes the same layout.
]]
local record = {}
--- @private
local ORDER_GIVEN = 1
local PRIORITY_UNIT = 8796093022208 -- 2^43: priority * 2^43 + arrival stays exact below 2^53

-- Epoch milliseconds as the 8 bytes of order; negative or huge orders only ever come from the client, ready-made.
function record.order(ms) return struct.pack('>BI7', 128, ms) end

function record.build(priority, order, seq, created, body)
  return struct.pack('>I2', priority) .. order .. struct.pack('>I6I6', seq, created) .. body
end

function record.member(id, rec) return string.sub(rec, 1, 16) .. id end
function record.id_of(member) return string.sub(member, 17) end
function record.seq_of(member) return (struct.unpack('>I6', member, 11)) end
function record.group_of(rec) return (struct.unpack('>I2c0', rec, 26)) end
function record.max_of(rec) return (struct.unpack('>I2', rec, 23)) end

-- Where a group stands among the ready ones, by its head: most urgent first, then the one that arrived first.
function record.score(member)
  local priority, seq = struct.unpack('>I2xxxxxxxxI6', member)
  return priority * PRIORITY_UNIT + seq
end

-- A job that brought no order of its own is ordered by its due time, so a new due time is a new place.
function record.moved_to(rec, ms)
  if struct.unpack('>B', rec, 25) == ORDER_GIVEN then return rec end
  return string.sub(rec, 1, 2) .. record.order(ms) .. string.sub(rec, 11)
end

function record.with_data(rec, data)
  local _, after_group = struct.unpack('>I2c0', rec, 26)
  local _, after_options = struct.unpack('>I2c0', rec, after_group)
  return string.sub(rec, 1, after_options - 1) .. data
end
