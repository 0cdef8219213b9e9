--[[ The times of the last starts, which rate limits count (lib/rate.lua): read before a start, noted after it. ]]
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/whole"
--- @include "lib/meta"
--- @include "lib/writes"
--- @include "lib/horizon"
--- @include "lib/rate"
local starts = {}
--- @private

-- Note the starts of a group in this call. The list is needed until the last of them no longer counts.
function starts.note_of_group(g)
  W.push(K.rate .. g.id, whole(now), g.rate[1], math.min(g.started, g.rate[1]))
  W.zadd(K.rated, whole(now + g.rate[2]), g.id)
end

-- How many of `wanted` jobs the queue may start now; if fewer, also when the next one may start.
function starts.allowance(wanted)
  local n, per = rules.rate[1], rules.rate[2]
  local free = n - redis.call('LLEN', K.starts)
  if free >= wanted then return wanted end
  local last_starts = redis.call('LRANGE', K.starts, free - wanted, -1)
  local allowed = math.max(0, free)
  for i = #last_starts, 1, -1 do
    local last = tonumber(last_starts[i])
    if not rate.is_over(last, per) then return allowed, last + per + 1 end
    allowed = math.min(wanted, allowed + 1)
  end
  if allowed == wanted then return allowed end
  -- The list was not full: the next start waits for the entry that will be the oldest then, perhaps a start of this
  -- call.
  local last = allowed < n and tonumber(redis.call('LINDEX', K.starts, n - allowed - 1) or nil) or now
  return allowed, (rate.is_over(last, per) and now or last) + per + 1
end

function starts.note(count)
  local n = rules.rate[1]
  if count > 0 then W.push(K.starts, whole(now), n, math.min(count, n)) end
end

-- Allow no start before `time`: calls that make a group ready before then need not wake a worker.
function starts.limit_until(time)
  if time == meta.limited_until then
    horizon.call_again(time) -- known already: horizon.add would wake the asking worker again and again
  else
    horizon.add(time)
    meta.limited_until = time
  end
end

-- Delete the lists that no longer count.
function starts.sweep(limit)
  local old = redis.call('ZRANGE', K.rated, '-inf', whole(now - 1), 'BYSCORE', 'LIMIT', 0, limit)
  for i = 1, #old do
    W.zrem(K.rated, old[i])
    W.unlink(K.rate .. old[i])
  end
  return #old
end
