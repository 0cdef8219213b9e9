--[[
Rate limits, {n, per}: at most n starts in any window of `per` ms. Exact, so the times of the last n starts are kept,
newest first; the next start may come when the n-th last one is more than `per` ago (more: times are whole ms, and a
start late in its millisecond is nearer than it looks).
]]
--- @include "lib/meta"
--- @include "lib/horizon"
local rate = {}
--- @private

-- A start does not count any more: it is old, or of a time to come, from before the clock was set back.
local function is_over(start, per) return now - start > per or start > now end

-- When a group may start its next job, 0 = now. `g.started` starts of this very call count already.
function rate.next(g)
  local n, per, started = g.rate[1], g.rate[2], g.started or 0
  local last = started >= n and now or tonumber(redis.call('LINDEX', K.rate .. g.id, n - started - 1) or nil)
  if not last or is_over(last, per) then return 0 end
  return last + per + 1
end

-- Note the starts of this call; the list is worth keeping until the last of them is old.
function rate.note(g)
  redis.call('ZCARD', K.rated) -- a key of a wrong type must stop the call before it writes
  W.push(K.rate .. g.id, W.whole(now), g.rate[1], math.min(g.started, g.rate[1]))
  W.zadd(K.rated, W.whole(now + g.rate[2]), g.id)
end

-- Nothing may start for now, and somebody knows until when. (Far ahead, it is from before the clock was set back.)
function rate.is_throttled()
  return meta.throttled > now and rules.rate ~= nil and meta.throttled <= now + rules.rate[2] + 1
end

if rules.rate then
  local n, per = rules.rate[1], rules.rate[2]

  -- How many of `wanted` jobs the queue may start now, and when the next one after those, if they are fewer.
  function rate.allowance(wanted)
    local free = n - redis.call('LLEN', K.starts)
    if free >= wanted then return wanted end
    local oldest = redis.call('LRANGE', K.starts, free - wanted, -1)
    local allowed = math.max(0, free)
    for i = #oldest, 1, -1 do
      local last = tonumber(oldest[i])
      if not is_over(last, per) then return allowed, last + per + 1 end
      allowed = math.min(wanted, allowed + 1)
    end
    if allowed == wanted then return allowed end
    -- The list was not full: the next one waits for the oldest that will be, perhaps one of these.
    local last = allowed < n and tonumber(redis.call('LINDEX', K.starts, n - allowed - 1) or nil) or now
    return allowed, (is_over(last, per) and now or last) + per + 1
  end

  function rate.started(count)
    if count > 0 then W.push(K.starts, W.whole(now), n, math.min(count, n)) end
  end

  -- Nothing may start before `time`: whoever makes work ready until then need not wake anybody.
  function rate.throttle(time)
    if time == meta.throttled then
      horizon.note(time) -- told before: telling again would wake the worker that asks, for ever
    else
      horizon.add(time)
      W.hset(K.meta, 'throttled', W.whole(time))
    end
  end
end

-- Forget the lists that say nothing any more.
function rate.sweep(limit)
  local old = redis.call('ZRANGE', K.rated, '-inf', W.whole(now - 1), 'BYSCORE', 'LIMIT', 0, limit)
  for i = 1, #old do
    W.zrem(K.rated, old[i])
    W.unlink(K.rate .. old[i])
  end
  return #old
end
