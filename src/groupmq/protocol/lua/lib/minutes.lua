--[[
Store the minutes that are over, for two weeks.

  series  hash  minute (epoch ms / 60000) -> eight numbers of 6 bytes: completed, failed, retried, stalled, rate-
                limited, jobs that waited, ms they waited, ms that runs took; then, if there is any, a list of pairs
                {index, how many}, without zeros
                `wait`, `run` -> of all minutes that are over, numbers of 6 bytes: ms in all, then for i = 0 .. 24 the
                jobs whose time was below 2^i ms (the last: all above)

  index   0 .. 24   jobs that waited below 2^index ms
          25 .. 49  the same for runs, from 25
          50        failed jobs that were dropped because more than `keep_failed` were kept

Ten pairs take some thirty bytes; all indexes as fixed numbers would take 306. A value of another form is treated as
missing and overwritten.
]]
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/whole"
--- @include "lib/seen"
--- @include "lib/writes"
--- @include "lib/measure_value"
local minutes = {}
--- @private
local KEPT, SLACK, DRAWN = 20160, 840, 500
local BUCKETS, LENGTH, LAYOUT = measure_value.LARGEST + 1, 48, '>I6I6I6I6I6I6I6I6'
local DROPPED, NUMBERS = 2 * BUCKETS, 8

-- Index -> how many; nil if the value has another form.
local function read_pairs(rest)
  if rest == '' then return {} end
  local readable, list = pcall(cmsgpack.unpack, rest)
  if not readable or type(list) ~= 'table' then return nil end
  local counts = {}
  for i = 1, #list, 2 do
    if type(list[i]) ~= 'number' or type(list[i + 1]) ~= 'number' then return nil end
    counts[list[i]] = list[i + 1]
  end
  return counts
end

local function pack_pairs(counts)
  local list = {}
  for at = 0, DROPPED do
    local n = counts[at]
    if n and n > 0 then
      list[#list + 1] = at
      list[#list + 1] = n
    end
  end
  return list[1] and cmsgpack.pack(list) or ''
end

-- The value of a minute. If it is stored already, because the clock was set back, the numbers are added to it.
local function merged(raw, numbers, counts)
  local before = raw and #raw >= LENGTH and read_pairs(string.sub(raw, LENGTH + 1))
  if before then
    local sums, more = { struct.unpack(LAYOUT, raw) }, { struct.unpack(LAYOUT, numbers) }
    for i = 1, NUMBERS do sums[i] = sums[i] + more[i] end
    for at, n in pairs(before) do counts[at] = (counts[at] or 0) + n end
    numbers = struct.pack(LAYOUT, unpack(sums, 1, NUMBERS))
  end
  return numbers .. pack_pairs(counts)
end

-- Add the times of a minute to all times so far: its sum, and the BUCKETS counts of `found` after index `first`.
local function added_up(raw, sum, found, first)
  local numbers = { sum, unpack(found, first + 1, first + BUCKETS) }
  if raw and #raw == 6 * #numbers then
    for i = 1, #numbers do numbers[i] = numbers[i] + struct.unpack('>I6', raw, 6 * i - 5) end
  end
  for i = 1, #numbers do numbers[i] = struct.pack('>I6', numbers[i]) end
  return table.concat(numbers)
end

-- Delete minutes that were not deleted in time, because no call came when they became old. There may be too many to
-- read in one call, so each minute deletes some, drawn at random.
local function drop_old(oldest)
  for _, field in ipairs(redis.call('HRANDFIELD', K.series, DRAWN)) do
    local at = tonumber(field)
    if at and at < oldest then W.hdel(K.series, field) end
  end
end

-- Store the minute of `value` (lib/measure_value.lua), because another minute has begun.
function minutes.close(value)
  local minute, oldest = measure_value.minute_of(value), math.floor(now / 60000) - KEPT + 1
  local numbers, dropped, found = measure_value.of_minute(value)
  local _, _, _, _, _, _, waited, ran = struct.unpack(LAYOUT, numbers)
  seen.add(K.series)
  local stored = redis.call('HMGET', K.series, whole(minute), 'wait', 'run')
  if minute >= oldest then
    local counts = { [DROPPED] = dropped }
    for i = 1, 2 * BUCKETS do counts[i - 1] = found[i] end
    W.hset(K.series, whole(minute), merged(stored[1], numbers, counts))
  end
  W.hset(K.series, 'wait', added_up(stored[2], waited, found, 0))
  W.hset(K.series, 'run', added_up(stored[3], ran, found, BUCKETS))
  W.hdel(K.series, whole(oldest - 1))
  if redis.call('HLEN', K.series) > KEPT + SLACK then drop_old(oldest) end
end
