--[[
The counters of a queue since it was created, and those of the current minute: one value in `meta`, which every call
reads anyway.

  minute    4 bytes         epoch ms / 60000
  totals    7 of 6 bytes    completed, failed, retried, stalled, lost, rate-limited, lease lost
  counted   9 of 6 bytes    of that minute: completed, failed, retried, stalled, rate-limited, jobs that waited, ms they
                            waited, ms that runs took, failed jobs that retention dropped
  spread    50 of 4 bytes   of that minute: jobs that waited below 2^0, 2^1 ... ms (the 25th: all above), then the same
                            for runs

When the minute is over, lib/minutes.lua stores it. commands/measures.py reads the same layout.
]]
local measure_value = { LARGEST = 24 }
--- @private
local LAYOUT, FIXED = '>I4I6I6I6I6I6I6I6I6I6I6I6I6I6I6I6I6', 100 -- bytes before the spread
local BUCKETS = measure_value.LARGEST + 1
local NOTHING = ('\0'):rep(4 * 2 * BUCKETS) -- no `string.rep`: globals do not exist while a library is loaded
local SIZE = FIXED + #NOTHING

-- Whether the value has our length. Any other value is treated as missing.
function measure_value.is_ours(raw) return raw and #raw == SIZE end

-- The value of a queue that has measured nothing.
function measure_value.empty(minute) return struct.pack('>I4', minute) .. ('\0'):rep(SIZE - 4) end

function measure_value.minute_of(raw) return (struct.unpack('>I4', raw)) end

-- The same totals, in another minute.
function measure_value.in_minute(raw, minute)
  return struct.pack('>I4', minute) .. string.sub(raw, 5, 46) .. ('\0'):rep(9 * 6) .. NOTHING
end

-- The numbers of its minute: the first eight of `counted`, still packed, dropped jobs, and the spread as an array.
function measure_value.of_minute(raw)
  local found = {}
  for i = 1, 2 * BUCKETS do found[i] = struct.unpack('>I4', raw, FIXED + 4 * i - 3) end
  return string.sub(raw, 47, 94), struct.unpack('>I6', raw, 95), found
end

-- The index in the spread that counts a time.
local function bucket(ms)
  if ms < 1 then return 1 end
  local _, exponent = math.frexp(ms)
  return (exponent < BUCKETS and exponent or BUCKETS - 1) + 1
end

-- `times`: ms -> how many. Returns their number, their sum, and the spread with them added from index `first` on.
local function spread_with(spread, first, times)
  local n, sum, by_bucket = 0, 0, {}
  for ms, count in pairs(times) do
    if ms < 0 then ms = 0 end
    local i = bucket(ms)
    n, sum, by_bucket[i] = n + count, sum + ms * count, (by_bucket[i] or 0) + count
  end
  for i, count in pairs(by_bucket) do
    local at = 4 * (first + i) - 3
    local packed = struct.pack('>I4', struct.unpack('>I4', spread, at) + count)
    spread = string.sub(spread, 1, at - 1) .. packed .. string.sub(spread, at + 4)
  end
  return n, sum, spread
end

-- Add the numbers of a call: `counts` by name, `waits` and `runs` (ms -> how many, or nil), `dropped` failed jobs.
function measure_value.add(raw, counts, waits, runs, dropped)
  local minute, completed, failed, retried, stalled, lost, rate_limited, lease_lost,
    completed_now, failed_now, retried_now, stalled_now, rate_limited_now, started, waited, ran, dropped_now =
    struct.unpack(LAYOUT, raw)
  local spread, p, f, r = string.sub(raw, FIXED + 1), counts.completed or 0, counts.failed or 0, counts.retried or 0
  local s, l, n_waits, more_waited, more_ran, _ = counts.stalled or 0, counts.rate_limited or 0, 0, 0, 0, nil
  if waits then n_waits, more_waited, spread = spread_with(spread, 0, waits) end
  if runs then _, more_ran, spread = spread_with(spread, BUCKETS, runs) end
  return struct.pack(
    LAYOUT, minute, completed + p, failed + f, retried + r, stalled + s, lost + (counts.lost or 0), rate_limited + l,
    lease_lost + (counts.lease_lost or 0), completed_now + p, failed_now + f, retried_now + r, stalled_now + s,
    rate_limited_now + l, started + n_waits, waited + more_waited, ran + more_ran, dropped_now + dropped
  ) .. spread
end
