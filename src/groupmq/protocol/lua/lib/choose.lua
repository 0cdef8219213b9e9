--[[
Choose the jobs to take next: the head of each ready group, in the order of `ready`. A group that may run several jobs
at once rejoins the candidates at its new score, so that one group is not drained while others wait. Behind a head the
call may take jobs of the same group that are prefetched (transitions/take.lua); beyond the jobs that start now it may
take further heads, which are prefetched too (lib/reserve.lua). For a handler of batches, all chosen jobs of a group
start at once (lib/filling.lua).
]]
--- @include "lib/call"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/seen"
--- @include "lib/meta"
--- @include "lib/record"
--- @include "lib/horizon"
--- @include "lib/group"
--- @include "lib/group_state"
--- @include "lib/members"
--- @include "lib/prefetch"
--- @include "lib/filling"
--- @include "lib/bodies"
local choose = {}
--- @private
local ROOM = 1048576 -- bytes of large heads that one call takes; the first head may exceed it
local FURTHER = 100 -- ready groups to read beyond those wanted, if some of them may be skipped

-- Insert a group into the list of groups that this call has changed: worst first, so that the best is the last item.
local function insert(changed, g)
  local lo, hi = 1, #changed + 1
  while lo < hi do
    local mid = math.floor((lo + hi) / 2)
    if changed[mid].score > g.score then lo = mid + 1 else hi = mid end
  end
  table.insert(changed, lo, g)
end

-- Groups that this call has not changed, in stored order: `n` and one more, which shows whether work is left.
local function untouched(n, mine)
  local changed = 0
  for i = 1, #mine do
    if mine[i].at ~= 'none' then changed = changed + 1 end -- it may have an entry in `ready`, which is skipped
  end
  seen.add(K.ready)
  local stored = redis.call('ZRANGE', K.ready, 0, n + changed, 'WITHSCORES')
  local gids, scores, count = {}, {}, 0
  for i = 1, #stored, 2 do
    if count > n then break end
    if not group.is_touched(stored[i]) then
      count = count + 1
      gids[count], scores[count] = stored[i], tonumber(stored[i + 1])
    end
  end
  group.load(gids)
  return gids, scores
end

-- The ready groups that this call has changed and whose score is better than `worst`, worst first.
local function changed_groups(mine, worst)
  local changed = {}
  for i = 1, #mine do
    local g = mine[i]
    if g.stale or not g.state then group_state.refresh(g) end
    if g.state == 'ready' and g.score < worst then insert(changed, g) end
  end
  return changed
end

-- Take the head out of a ready group; `n` jobs are still wanted. Returns the member, and how many jobs of the group may
-- be taken together, the head included.
local function pop(g, n, row, batches)
  if batches then
    if row > 1 and filling.fits(g) then return filling.pop(g, row) end
  elseif row > 1 and prefetch.row_allows(g) then
    return members.pop_row(g, row)
  end
  local free = g.concurrency - g.running
  return members.pop(g, free == 1 and 1 or math.min(free, n)), 1
end

-- Whether a delayed job of the group may be due, not promoted yet, and sort before the head. Only the number of delayed
-- jobs is known, so every group that has one counts. Jobs without a group have no order among themselves.
local function may_lack(g) return g.delayed > 0 and g.id ~= '' end

-- Choose up to `n` heads, and with each up to `row` jobs of its group, the head included; `most` jobs in all. Heads
-- come before prefetched jobs, because a rate limit may leave few jobs and some prefetched jobs may be refused later.
-- `more_due`: some due delayed jobs have not joined their groups yet; a group that may lack one starts nothing.
-- `fill`: if there are fewer jobs than this, further heads are prefetched while `is_fit` allows each of them.
-- `who`: the arguments of advance. With `together`, the jobs of a group start at once, and the group waits up to that
-- many ms for a full batch.
-- Returns the groups, how many jobs of each were chosen together, all job ids, whether ready groups may be left,
-- whether that is because the heads were too large, and whether a group waits for a full batch.
function choose.jobs(n, row, most, more_due, fill, is_fit, who)
  local wait, default = who.together, who.policy.max_attempts
  local page, waits = math.max(n, fill), wait ~= nil and wait > 0
  local gids, scores = untouched((more_due or waits) and n + FURTHER or page, call.touched)
  local changed = changed_groups(call.touched, not (more_due or waits) and scores[page] or math.huge)
  local passed_over, unfilled, room, large = false, false, ROOM, meta.large
  local groups, lengths, ids, count, taken, next_up, id_of = {}, {}, {}, 0, 0, 1, record.id_of
  while (taken < n or count < fill) and count < most and room > 0 do
    local g = changed[#changed]
    if gids[next_up] and (not g or scores[next_up] < g.score) then
      g = group.get(gids[next_up])
      next_up = next_up + 1
      -- The stored state is still right, unless a time that the group waits for may have passed.
      if g.at == 'ready' then g.state = 'ready' else group_state.refresh(g) end
    elseif g then
      changed[#changed] = nil
    else
      break
    end
    if g.state == 'ready' and more_due and may_lack(g) then
      passed_over = true
    elseif g.state == 'ready' and waits and filling.waits(g, row, wait, default) then
      unfilled = true
    elseif g.state == 'ready' and taken >= n and not is_fit(g, gids, next_up, fill - count) then
      passed_over = true
      break -- it is next in order: prefetching a later head would reorder them
    elseif large and g.state == 'ready' and taken > 0 and bodies.size(record.id_of(g.head)) > room then
      passed_over, room = true, 0
    elseif g.state == 'ready' then
      local other_heads = n - taken - 1
      local free = taken < n and most - count - other_heads or fill - count
      local member, length = pop(g, math.max(n - taken, fill - count), math.min(row, free), wait)
      group.start(g)
      taken = taken + 1
      groups[taken], lengths[taken], ids[count + 1] = g, length, id_of(member)
      local behind = g.stored
      for i = 2, length do ids[count + i] = id_of(behind[i]) end
      if large then room = room - bodies.size(ids[count + 1]) end
      count = count + length
      group_state.refresh(g)
      if g.state == 'ready' and wait and length > 1 then
        -- No group: how many of these jobs start is not decided yet, so the next batch is for the next call.
        passed_over = true
        horizon.call_again(now)
      elseif g.state == 'ready' then
        insert(changed, g)
      end
    else
      g.at = 'unknown' -- a stale entry in `ready`, which the end of the call corrects
      group.touch(g)
    end
  end
  -- If stale entries (left when the clock stepped back during a hold) used up the page, the groups behind them are
  -- not known, so work may be left.
  local left = passed_over or changed[1] ~= nil or gids[next_up] ~= nil or (not waits and #gids > page)
  local full = left and room <= 0 and taken < n
  if full then horizon.call_again(now) end
  return groups, lengths, ids, left, full, unfilled
end
