--[[
Serve a worker that asks for jobs: how many it may take, as pauses, turns and rates allow, and what follows if there are
fewer.
]]
--- @include "lib/meta"
--- @include "lib/prefetch"
--- @include "lib/reserve"
--- @include "lib/starts"
--- @include "lib/turn"
--- @include "transitions/take"
--- @include "transitions/grant"
local serve_worker
--- @private
local NOTHING = { {}, 0, {}, {} }

-- Let the worker take up to `n` jobs that start now, and prefetch others. Returns what take_next returns: the jobs,
-- their rows, and whether a worker that asks now would get more; and the epoch of the worker's turn. `who`: the
-- arguments of advance. `more_due`: delayed jobs are due that have not joined their groups yet (lib/choose.lua).
function serve_worker(n, who, more_due)
  if meta.paused then n = 0 end
  local allowed, limited_until = n > 0 and turn.allowance(n, who.worker, who.batch, who.epoch) or n, nil
  local mine = allowed == n
  local prefetches = prefetch.is_on(who)
  if rules.exclusive then who.together = nil end -- a turn counts its jobs one by one
  local row = (prefetches or who.together) and who.row or 1
  local fill = prefetches and reserve.size(who) or 0
  local most = math.max(allowed * row, fill)
  if most > 0 and rules.rate then most, limited_until = starts.allowance(most) end
  local jobs, rows, left, short = NOTHING, {}, false, false
  if most > 0 then jobs, rows, left, short = take_next(allowed, row, most, who, more_due, fill) end
  local taken = #jobs[1]
  if rules.rate then
    starts.note(taken)
    if limited_until and taken == most then
      starts.limit_until(limited_until)
      left = false
    end
  end
  if short and not left and not limited_until then
    reserve.ask(who.worker)
    if prefetch.in_queue() then reserve.set_idle(who.worker) end
    offer_slot(who, prefetch.in_queue() and prefetch.heads_in_queue())
  elseif taken > 0 then
    reserve.works(who.worker)
  end
  return jobs, rows, left and mine, turn.took(who.worker, taken, who.lease)
end
