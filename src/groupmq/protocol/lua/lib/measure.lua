--[[
The counters of a call, and how long its jobs waited and ran. All of it is added to one value in `meta`
(lib/measure_value.lua), which the call reads and writes anyway.

A wait lasts from the time at which a job may start to the start of its first attempt; it counts again if the job was
released or rate-limited then. A run that ended with an outcome is measured from the time at which its job was taken.
For jobs of one group that end together in one call, the time of all of them is recorded as that of the first.
]]
--- @include "lib/call"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/meta"
--- @include "lib/writes"
--- @include "lib/measure_value"
--- @include "lib/minutes"
local measure = {}
--- @private
local NONE = {}

-- `call.waits`, `call.runs`: ms -> how many jobs of this call; many have the same time.
function measure.wait(ms)
  local waits = call.waits or {}
  call.waits, waits[ms] = waits, (waits[ms] or 0) + 1
end

-- The same for many jobs that could have started at these times.
function measure.waits(times)
  local waits, at = call.waits or {}, now
  for i = 1, #times do
    local ms = at - times[i]
    waits[ms] = (waits[ms] or 0) + 1
  end
  if times[1] then call.waits = waits end
end

function measure.run(ms, times)
  local runs = call.runs or {}
  call.runs, runs[ms] = runs, (runs[ms] or 0) + (times or 1)
end

function measure.count(name, n)
  local counts = call.counts or {}
  call.counts, counts[name] = counts, (counts[name] or 0) + n
end

function measure.note()
  local waits, runs, counts = call.waits, call.runs, call.counts
  local dropped = call.dropped or 0
  if not (waits or runs or counts) and dropped == 0 then return end
  local minute, value = math.floor(now / 60000), meta.measures
  if not measure_value.is_ours(value) then
    value = measure_value.empty(minute)
  elseif measure_value.minute_of(value) ~= minute then
    minutes.close(value)
    value = measure_value.in_minute(value, minute)
  end
  W.hset(K.meta, 'measures', measure_value.add(value, counts or NONE, waits, runs, dropped))
end
