--[[
Rate limits, {n, per}: at most n starts in any span of `per` ms. They are exact, so the times of the last n starts are
stored, newest first. The next start may come when the n-th last one is more than `per` ago. "More", because times are
whole ms: a start late in a millisecond is later than the stored number.
]]
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/meta"
local rate = {}
--- @private

-- Whether a start no longer counts: it is old, or lies in the future because the clock was set back.
function rate.is_over(start, per) return now - start > per or start > now end

-- When a group may start its next job, 0 = now. The `g.started` starts of this call count already.
function rate.next(g)
  local n, per, started = g.rate[1], g.rate[2], g.started or 0
  local last = started >= n and now or tonumber(redis.call('LINDEX', K.rate .. g.id, n - started - 1) or nil)
  if not last or rate.is_over(last, per) then return 0 end
  return last + per + 1
end

-- Whether the queue's rate forbids all starts for now. A time too far ahead was stored before the clock was set back,
-- and does not count.
function rate.is_limited()
  return meta.limited_until > now and rules.rate ~= nil and meta.limited_until <= now + rules.rate[2] + 1
end
