--[[
How long jobs waited and ran, and how much happened in each minute: bounded, whatever the traffic.

  histograms  hash  `wait:<i>`, `run:<i>`: jobs whose time was below 2^i ms (i = 0 .. 24, the last for all above);
                    `wait:sum`, `run:sum`: ms in all
  series      hash  minute (epoch ms / 60000) -> eight numbers of 6 bytes: processed, failed, retried, stalled, limited,
                    jobs that waited, ms they waited, ms that runs took

A series goes back two weeks. Waiting is from when a job may start to its first start; running is each run that ended
with an outcome.
]]
--- @include "lib/meta"
local measure = {}
--- @private
local LARGEST, MINUTES, SLACK = 24, 20160, 840
local LAYOUT = '>I6I6I6I6I6I6I6I6'
local waits, runs = {}, {}
local n_waits, waited, ran = 0, 0, 0

local function bucket(ms)
  if ms < 1 then return 0 end
  local _, exponent = math.frexp(ms)
  return exponent < LARGEST and exponent or LARGEST
end

function measure.wait(ms)
  if ms < 0 then ms = 0 end
  local i = bucket(ms)
  waits[i], n_waits, waited = (waits[i] or 0) + 1, n_waits + 1, waited + ms
end

function measure.run(ms)
  if ms < 0 then ms = 0 end
  local i = bucket(ms)
  runs[i], ran = (runs[i] or 0) + 1, ran + ms
end

-- Entries that were not removed in time because nothing happened then: only ever after a long silence.
local function drop_old(minute)
  local old = {}
  for _, field in ipairs(redis.call('HKEYS', K.series)) do
    if tonumber(field) <= minute - MINUTES then old[#old + 1] = field end
  end
  for i = 1, math.min(#old, 4000) do W.hdel(K.series, old[i]) end
end

local function note_minute(counters)
  local minute = math.floor(now / 60000)
  local field = W.whole(minute)
  local raw = redis.call('HGET', K.series, field)
  local p, f, r, s, l, n, w, d = 0, 0, 0, 0, 0, 0, 0, 0
  if raw then
    p, f, r, s, l, n, w, d = struct.unpack(LAYOUT, raw)
  else
    W.hdel(K.series, W.whole(minute - MINUTES))
    if redis.call('HLEN', K.series) > MINUTES + SLACK then drop_old(minute) end
  end
  W.hset(K.series, field, struct.pack(
    LAYOUT, p + (counters.processed or 0), f + (counters.failed or 0), r + (counters.retried or 0),
    s + (counters.stalled or 0), l + (counters.limited or 0), n + n_waits, w + waited, d + ran
  ))
end

W.before_commit[#W.before_commit + 1] = function()
  local counters = W.counted()
  if n_waits == 0 and next(runs) == nil and next(counters) == nil then return end
  redis.call('HLEN', K.histograms) -- a key of a wrong type must stop the call before it writes
  for i, n in pairs(waits) do W.tally(K.histograms, 'wait:' .. i, n) end
  for i, n in pairs(runs) do W.tally(K.histograms, 'run:' .. i, n) end
  if waited > 0 then W.tally(K.histograms, 'wait:sum', waited) end
  if ran > 0 then W.tally(K.histograms, 'run:sum', ran) end
  note_minute(counters)
end
