--[[
Read groups: the state and counts of each, why its head cannot start, and the jobs that start next.

Arguments
  groups      group ids
  next        how many of the waiting jobs of each group to name
Reply      {now, per group: {state, waiting, running, delayed, concurrency (-1 = no limit),
            1 if paused, ms until its head may start or -1, its rate limit {n, per} or {},
            why its head cannot start (lib/held.lua; '' = it can, or no job waits; 'running' may mean 'stopping';
            'blocked' even if no job waits),
            if the head is in its back-off or snoozed, or a failed job blocks the group: that job and how often it has
            run, else '' and 0,
            since when the head waits (0 = no job waits), until when it is held (0 = not known),
            since when the group is blocked (0 = it is not), the job that has blocked it longest or '', how many
            jobs block it,
            failed attempts in a row that its breaker counts, until when its open breaker rests (0 = it is closed),
            since when it is open (0 = it is closed),
            ids of the waiting jobs that start next}}
Events     none
Cost       O(groups * next): some ten commands per group, and about a megabyte of records
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/call"
--- @include "lib/record"
--- @include "lib/group"
--- @include "lib/group_state"
--- @include "lib/held"
--- @include "lib/blocking"
--- @include "lib/waiting"
local BYTES = 1048576 -- of records that one call reads: a record may have 8 KiB of data
local UNKNOWN = 2147483647 -- shown for a group whose stored value is damaged, until repair has counted it

local function look(g)
  local state, time = group_state.decide(g)
  state = group_state.shown(g, state)
  local why, since, holder, attempts, next_ids = g.blocked and 'blocked' or '', 0, '', 0, {}
  if g.head then
    local id = record.id_of(g.head)
    -- Beyond BYTES no record is read, and the order is taken as the start of the wait. That is exact unless the job
    -- brought an order of its own.
    since = math.max(1, math.min(record.order_of(g.head), now))
    local rec = call.bytes_left > 0 and redis.call('HGET', K.jobs, id)
    if rec then
      since = record.waits_since(rec)
      call.bytes_left = call.bytes_left - #rec
    end
    g.state, g.due = state, time
    why = held.why(g) or ''
    if why == 'backoff' or why == 'snoozed' then holder = id end
    if A.next > 0 then
      local members = waiting.first(g, A.next)
      for i = 1, #members do next_ids[i] = record.id_of(members[i]) end
    end
  end
  local blocker = g.blocked and held.blocker(g) or ''
  if why == 'blocked' then holder = blocker end
  if holder ~= '' then attempts = held.attempts(holder) end
  local concurrency = g.concurrency == math.huge and -1 or g.concurrency
  return {
    state, waiting.count(g), math.min(g.running, UNKNOWN), g.delayed, concurrency, g.paused and 1 or 0,
    time and time - now or -1, g.rate or {}, why, holder, attempts, since, time or 0,
    g.blocked or 0, blocker, g.blocked and blocking.count(g.id) or 0, g.failures or 0, g.opened or 0,
    g.opened and tonumber(redis.call('ZSCORE', K.opened, g.id) or 0) or 0,
    next_ids,
  }
end

--- @reads
local found = {}
call.bytes_left = BYTES
group.load(A.groups)
for i = 1, #A.groups do found[i] = look(group.get(A.groups[i])) end
return { now, found }
