--[[
How long jobs waited and ran, and how much happened in each minute: bounded, whatever the traffic, and one read and one
write for a call, however much it did.

  series  hash  minute (epoch ms / 60000) -> eight numbers of 6 bytes: processed, failed, retried, stalled, limited,
                jobs that waited, ms they waited, ms that runs took; two weeks of them
                `wait`, `run` -> numbers of 6 bytes: ms in all, then for i = 0 .. 24 the jobs whose time was below
                2^i ms (the last: all above)

Waiting is from when a job may start to the start of its first attempt, once more if it was given back or rate-limited
then; running is each run that ended with an outcome, from when it was taken; of a row that ends in one call, the time
of all is that of the first.
A value of another length than ours is not ours: it counts as none and is written anew.
]]
--- @include "lib/meta"
local measure = {}
--- @private
local LARGEST, MINUTES, SLACK = 24, 20160, 840
local LAYOUT, LENGTH = '>I6I6I6I6I6I6I6I6', 48
local EMPTY = string.rep('\0', 6 * (LARGEST + 2))
local waits, runs = {}, {} -- ms -> how many of this call; many are the same

-- Which of the numbers counts a time.
local function place(ms)
  if ms < 1 then return 2 end
  local _, exponent = math.frexp(ms)
  return (exponent < LARGEST and exponent or LARGEST) + 2
end

function measure.wait(ms) waits[ms] = (waits[ms] or 0) + 1 end
function measure.run(ms, times) runs[ms] = (runs[ms] or 0) + (times or 1) end

-- How many there are, their sum, and how many by their place.
local function sum_up(times)
  local n, sum, numbers = 0, 0, {}
  for ms, count in pairs(times) do
    if ms < 0 then ms = 0 end
    local i = place(ms)
    n, sum, numbers[i] = n + count, sum + ms * count, (numbers[i] or 0) + count
  end
  return n, sum, numbers
end

-- Entries that were not removed in time because nothing happened then: only ever after a long silence.
local function drop_old(minute)
  local old = {}
  for _, field in ipairs(redis.call('HKEYS', K.series)) do
    local at = tonumber(field)
    if at and at <= minute - MINUTES then old[#old + 1] = field end
  end
  for i = 1, math.min(#old, 4000) do W.hdel(K.series, old[i]) end
end

local function with(raw, numbers, sum)
  if not raw or #raw ~= #EMPTY then raw = EMPTY end
  numbers[1] = sum
  for i, n in pairs(numbers) do
    local at = 6 * i - 5
    raw = raw:sub(1, at - 1) .. struct.pack('>I6', struct.unpack('>I6', raw, at) + n) .. raw:sub(at + 6)
  end
  return raw
end

local function note_minute(minute, raw, counters, n_waits, waited, ran)
  local p, f, r, s, l, n, w, d = 0, 0, 0, 0, 0, 0, 0, 0
  if raw and #raw == LENGTH then
    p, f, r, s, l, n, w, d = struct.unpack(LAYOUT, raw)
  else
    W.hdel(K.series, W.whole(minute - MINUTES))
    if redis.call('HLEN', K.series) > MINUTES + SLACK then drop_old(minute) end
  end
  W.hset(K.series, W.whole(minute), struct.pack(
    LAYOUT, p + (counters.processed or 0), f + (counters.failed or 0), r + (counters.retried or 0),
    s + (counters.stalled or 0), l + (counters.limited or 0), n + n_waits, w + waited, d + ran
  ))
end

W.before_commit[#W.before_commit + 1] = function()
  local counters = W.counted()
  local n_waits, waited, by_wait = sum_up(waits)
  local n_runs, ran, by_run = sum_up(runs)
  if n_waits == 0 and n_runs == 0 and next(counters) == nil then return end
  local minute = math.floor(now / 60000)
  local found = redis.call('HMGET', K.series, W.whole(minute), 'wait', 'run')
  note_minute(minute, found[1], counters, n_waits, waited, ran)
  if n_waits > 0 then W.hset(K.series, 'wait', with(found[2], by_wait, waited)) end
  if n_runs > 0 then W.hset(K.series, 'run', with(found[3], by_run, ran)) end
end
