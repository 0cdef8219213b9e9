--[[
How a group is stored in `groups`: running (4 bytes), delayed (4), whether its head is alone (1), the head (2 bytes of
length, then the member), then, if the group may have to wait, a msgpack map (lib/gate.lua): h = holds, job id -> the
time before which that job must not start, binding while it is the head; z = job id -> true if its handler snoozed it;
r = rest of the group; s, u = since and until when it waits for arrivals.

The head is stored here so that neither an add nor the end of a run has to read the sorted set. It is the last member of
that set, unless it is alone: then no other job waits, and there is no set. So a group that has only one job at a time,
which is the most frequent case, never has its own key. lib/group_changes.lua creates the set when a second job is
added.
]]
--- @include "lib/meta"
local group_value = {}
--- @private
local NONE = {}
local RUNS_ONE = '\0\0\0\1\0\0\0\0\0\0\0' -- one job runs and none waits: the most frequent value

-- Apply an operator's settings. Any number of the jobs without a group may run at once. An
-- early name of the concurrency is kept in `conf`: limit.
local function configure(g, conf)
  local c = conf and cmsgpack.unpack(conf) or NONE
  g.paused = c.paused
  g.concurrency = g.id == '' and math.huge or c.limit or g.concurrency
  if c.rate then g.rate, g.gated = c.rate, true end
  if g.at ~= 'unknown' then
    local may = g.head and not g.paused and g.running < g.concurrency
    g.at = may and (g.gated and 'unknown' or 'ready') or 'none'
  end
end

-- Read the map behind the head, which says why the group has to wait.
local function unpack_waits(g, raw)
  local waits = cmsgpack.unpack(raw)
  g.holds, g.snoozed, g.rest, g.since, g.till, g.gated = waits.h, waits.z, waits.r, waits.s, waits.u, true
end

-- Whether the stored value of a group and the settings of the queue are enough to decide its state.
function group_value.is_all() return not (meta.overrides or meta.blocks or meta.breakers) end

-- Copy a stored value into `g`, a table that may be used again for the next group. This is for calls that read hundreds
-- of groups and change none. Returns false, and changes nothing, if the value has more than the counts and the head, or
-- is damaged: `group_value.read` reads such a value.
function group_value.glance(g, gid, raw)
  if #raw < 11 then return false end
  local running, delayed, alone, head, after = struct.unpack('>I4I4BI2c0', raw)
  if after <= #raw then return false end
  head = head ~= '' and head
  g.id, g.running, g.delayed, g.concurrency, g.head, g.was_head = gid, running, delayed, meta.concurrency, head, head
  g.alone, g.unset = alone == 1, alone == 1 or not head
  return true
end

-- Build a group from its stored value and an operator's settings. `gated`: the rules of the queue may make any head
-- wait (lib/gate.lua).
function group_value.read(gid, raw, conf, gated)
  local running, delayed, alone, head, waits, at = 0, 0, 0, '', nil, 'none'
  local concurrency = meta.concurrency
  if not raw then
    raw = false
  elseif raw == RUNS_ONE then
    running = 1
  elseif #raw < 11 then
    -- A damaged value: no job of this group starts until repair has counted it again. Other groups are not affected.
    running = math.huge
  else
    local after
    running, delayed, alone, head, after = struct.unpack('>I4I4BI2c0', raw)
    if after <= #raw then
      waits, at = string.sub(raw, after), 'unknown' -- parked, ready, or due and not yet moved
    elseif running < concurrency and head ~= '' then
      at = gated and gid ~= '' and 'unknown' or 'ready'
    end
  end
  head = head ~= '' and head
  -- All common fields in one constructor, at most 16: a growing table is rehashed, a larger one costs twice as much.
  local g = {
    id = gid,
    raw = raw, -- the value as stored, false = none
    running = running, -- runs under way
    delayed = delayed, -- delayed jobs of the group
    concurrency = concurrency, -- how many may run at once
    head = head, -- the member that starts first, false = none waits
    was_head = head, -- the head before this call
    at = at, -- the stored entry: 'ready', 'none' (in neither zset) or 'unknown'
    state = false, -- as `group_state.refresh` has decided in this call
    score = 0, -- in `ready`, if its state is ready
    alone = alone == 1, -- the head is stored in the value only, and no other job waits
    touched = false, -- this call has changed something
    stale = false, -- this call has changed something that may change its state
    stored = false, -- members as read from its sorted set, the first to start first
    added = false, -- members that this call adds, as arguments of ZADD
    -- The group has no sorted set, since no job waits or its head is alone. Not known if the value is damaged.
    unset = running < math.huge and (alone == 1 or not head),
  }
  -- Fields that few groups have:
  --   gated      its head may have to wait (lib/gate.lua)
  --   holds      job id -> the time before which that job must not start
  --   snoozed    job id -> true: its hold is that of a handler that raised Snooze
  --   rest       until when the whole group rests
  --   since      when its window for late arrivals was opened
  --   till       until when it waits for late arrivals
  --   rate       its rate limit {n, per}
  --   due        when it may start, if it is parked
  --   paused     true: by an operator
  --   blocked    since when failed jobs block it (lib/blocking.lua)
  --   blockers   how many jobs block it
  --   failures   attempts in a row that have failed (lib/breaker_changes.lua)
  --   opened     its breaker is open, and the group rests until then
  --   started    how many jobs this call starts, if rates or tickets need it
  --   ticket     its number in the line (lib/line.lua)
  --   size       its live jobs, if the queue bounds them (transitions/enter.lua)
  --   pos        index in `stored` of the first member that is still there (lib/heads.lua)
  --   known_all  `stored` has all members
  --   popped     how many members this call takes from the front (lib/members.lua)
  --   removed    members that this call removes otherwise, as arguments of ZREM and as a set
  --   undone     set of members that this call has added and dropped again
  --   new        set of the members in `added` (lib/heads.lua)
  --   sorted     the same members, the first to start last
  --   sorted_of  how many arguments of `added` these two were made of
  --   why        why its head cannot start (waits.lua)
  --   looked_at  waits.lua has looked at it
  --   adopted    repair has made it again (lib/repair/jobs.lua)
  if waits then unpack_waits(g, waits) end
  if gated and gid ~= '' then g.gated, g.rate = true, rules.group_rate end
  if conf or gid == '' then configure(g, conf) end
  return g
end

local function pack_waits(g)
  if not (g.holds or g.rest or g.till) then return '' end
  return cmsgpack.pack({ h = g.holds, z = g.snoozed, r = g.rest, s = g.since, u = g.till })
end

-- The value to store at the end of the call, nil if the group has no live job.
function group_value.pack(g)
  local head, running, delayed = g.head, g.running, g.delayed
  local value
  if head then
    value = struct.pack('>I4I4BI2', running, delayed, g.alone and 1 or 0, #head) .. head
  elseif running == 1 and delayed == 0 then
    value = RUNS_ONE
  elseif running > 0 or delayed > 0 then
    value = struct.pack('>I4I4BI2', running, delayed, 0, 0)
  else
    return nil
  end
  return g.gated and value .. pack_waits(g) or value
end
