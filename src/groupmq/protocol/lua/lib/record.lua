--[[
A job's record, one opaque value in `jobs`:

  sort key 16 bytes  priority (2), order (8, as order + 2^63), arrival (6), all big-endian and bitwise inverted, so that
                     jobs that start later sort first
  created   6 bytes  milliseconds
  max       2 bytes  max_attempts, 0 = the worker's or queue's
  flags     1 byte   1 = the order was given by the caller, 2 = the job has a ttl, 4 = it blocks its group when it has
                     failed for good, 8 = it does not, whatever the queue's setting, 16 = its data is in `bodies`
  group     2 bytes of length, then the id; length 0 = no group
  options   2 bytes of length, then bytes that only the client reads
  data      the rest, which Lua never reads; nothing with flag 16 (lib/bodies.lua)

Members of a group's zset are sort key .. id, so the last member is the head. A new job usually goes to the other end,
which the server finds in a third of the steps, because it searches from the small end. record.py reads and writes the
same layout.

With `rules.ageing` (ms per level of priority), the sort key in a member has no priority and an order later by
priority * ageing: a job that has waited that much longer starts first, and no member has to move as time passes.
]]
--- @include "lib/keys"
--- @include "lib/call"
--- @include "lib/meta"
local record = {}
--- @private
local TTL, HOLD, CONTINUE, BESIDE = 2, 4, 8, 16
local PRIORITY_UNIT = 8796093022208 -- 2^43: priority * 2^43 + arrival stays exact below 2^53
local AGEING_EPOCH = 1577836800000 -- 2020: leaves 12 bits below a time
local MOST_2, MOST_4, MOST_6 = 65535, 4294967295, 281474976710655 -- largest numbers in 2, 4 and 6 bytes
local UNIT_4 = 4294967296

-- Epoch milliseconds as the 8 bytes of an order. Negative or huge orders come only from the client, already packed.
function record.order(ms) return struct.pack('>I4I4', 2147483647 - math.floor(ms / UNIT_4), MOST_4 - ms % UNIT_4) end

-- The number of the two halves of an order: exact up to 2^53, beyond that precise enough to tell that it is far off.
local function number(high, low) return (2147483647 - high) * UNIT_4 + (MOST_4 - low) end

function record.created_of(rec) return (struct.unpack('>I6', rec, 17)) end

function record.sort_key(priority, order, seq) return struct.pack('>I2c0I6', MOST_2 - priority, order, MOST_6 - seq) end

function record.build(sort_key, created, body) return sort_key .. struct.pack('>I6', created) .. body end

local function order_given(rec) return string.byte(rec, 25) % 2 == 1 end
local function has(flags, flag) return flags % (2 * flag) >= flag end
function record.has_ttl(rec) return has(string.byte(rec, 25), TTL) end
-- Whether the data is in `bodies`. `at`: the index of the flags, which is 25 in a record (the default) and 3 in a body.
function record.is_beside(bytes, at) return has(string.byte(bytes, at or 25), BESIDE) end

-- Whether the job blocks its group when it has failed for good.
function record.holds(rec)
  local flags = string.byte(rec, 25)
  return has(flags, HOLD) or (rules.hold ~= nil and not has(flags, CONTINUE))
end

function record.id_of(member) return string.sub(member, 17) end
function record.seq_of(member) return MOST_6 - struct.unpack('>I6', member, 11) end
function record.group_of(rec) return (struct.unpack('>I2c0', rec, 26)) end
function record.order_of(member)
  local high, low = struct.unpack('>I4I4', member, 3)
  return number(high, low)
end
function record.max_of(rec) return (struct.unpack('>I2', rec, 23)) end
function record.priority_of(member) return MOST_2 - struct.unpack('>I2', member) end

-- The bytes with which all members of the same priority begin.
function record.level_of(member) return string.sub(member, 1, 2) end
-- The least score of a group (record.score) whose head has the next lower priority.
function record.next_level(score) return (math.floor(score / PRIORITY_UNIT) + 1) * PRIORITY_UNIT end

function record.ticket_of(score) return score % PRIORITY_UNIT end

-- Returns since when a job may start (its arrival, or its due time if it was delayed), its max_attempts, and whether it
-- has a ttl: everything that taking a job needs, in one unpack. A call takes hundreds of jobs, so `number` and `has`
-- are inlined.
function record.terms(rec)
  local high, low, created, max, flags = struct.unpack('>xxI4I4xxxxxxI6I2B', rec)
  local since = flags % 2 == 1 and created or (2147483647 - high) * UNIT_4 + (MOST_4 - low)
  return since, max, flags % (2 * TTL) >= TTL
end

function record.waits_since(rec) return (record.terms(rec)) end

-- The record with a new due time. A job that brought no order is ordered by its due time, so its sort key changes.
function record.moved_to(rec, ms)
  if order_given(rec) then return rec end
  return string.sub(rec, 1, 2) .. record.order(ms) .. string.sub(rec, 11)
end

-- Where the data begins; `at`: the index of the length of the group, which is 26 in a record and 4 in a body.
local function data_at(bytes, at)
  local _, after_group = struct.unpack('>I2c0', bytes, at)
  local _, after_options = struct.unpack('>I2c0', bytes, after_group)
  return after_options
end

function record.without_data(rec) return string.sub(rec, 1, data_at(rec, 26) - 1) end

-- Cut a body into the bytes before its data, and the data. Returns the whole body if it has no more than `least` bytes
-- of data.
function record.divided(body, least)
  local at = data_at(body, 4)
  if #body - at < least then return body end
  return string.sub(body, 1, at - 1), string.sub(body, at)
end

-- The same bytes, whose flags are the `at`-th byte, with or without the flag that the data is in `bodies`.
function record.set_beside(bytes, at, is_beside)
  local flags = string.byte(bytes, at)
  if has(flags, BESIDE) == is_beside then return bytes end
  flags = flags + (is_beside and BESIDE or -BESIDE)
  return string.sub(bytes, 1, at - 1) .. string.char(flags) .. string.sub(bytes, at + 1)
end

local function aged_member(id, rec)
  local priority, high, low = struct.unpack('>I2I4I4', rec)
  low = low - (MOST_2 - priority) * rules.ageing
  high = high + math.floor(low / UNIT_4)
  if high < 0 then high, low = 0, 0 end
  return struct.pack('>I2I4I4', MOST_2, high, low % UNIT_4) .. string.sub(rec, 11, 16) .. id
end

-- The aged time since which the head waits; 12 bits of its arrival separate jobs of the same millisecond.
local function aged_score(head)
  local id = record.id_of(head)
  local rec = call.records and call.records[id] or redis.call('HGET', K.jobs, id)
  if not rec then return 0 end
  local aged = record.waits_since(rec) + record.priority_of(rec) * rules.ageing
  return (aged - AGEING_EPOCH) * 4096 + record.seq_of(rec) % 4096
end

-- Keep a record for this call. With ageing, the score of a group needs the record of its head, which may not be written
-- yet.
function record.remember(id, rec)
  if not rules.ageing then return end
  call.records = call.records or {}
  call.records[id] = rec
end

function record.member(id, rec)
  if rules.ageing then return aged_member(id, rec) end
  return string.sub(rec, 1, 16) .. id
end

-- The score of a group in `ready`, from its head: by priority, then by ticket or arrival.
function record.score(head, ticket)
  if rules.ageing then return aged_score(head) end
  local priority, seq = struct.unpack('>I2xxxxxxxxI6', head)
  return (MOST_2 - priority) * PRIORITY_UNIT + (ticket or MOST_6 - seq)
end
