--[[
Read a page of the groups with a few numbers each, enough to sort them by; or, where there are too many groups to read
them all, only those that matter most: the first of the blocked, of the ready, of the parked and of the running groups.

Arguments  `cursor` or `first`
  cursor      '0' = start
  first       how many groups of each kind
  sizes       true = count the waiting jobs of each group
Reply      {next cursor ('0' = end), groups in all, per group: state (1 byte: 0 idle, 1 ready, 2 busy, 3 parked,
            4 paused, 5 blocked), 1 byte: 1 = a job waits, waiting (0 if not counted), running, delayed (4 bytes each),
            arrival of its head (6), order of its head (a double), then its id}
Events     none
Cost       about PAGE groups (or 4 * first), one command for each group that is counted
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/distinct"
--- @include "lib/record"
--- @include "lib/group"
--- @include "lib/group_value"
--- @include "lib/gate"
--- @include "lib/waiting"
--- @include "lib/group_state"
--- @include "lib/lease"
local PAGE = 500
local STATES = { idle = 0, ready = 1, busy = 2, parked = 3, paused = 4, blocked = 5 }

-- Returns a cursor, group ids, and the stored value of each group.
local function front()
  local gids, add = distinct()
  for _, gid in ipairs(redis.call('ZRANGE', K.blocked, 0, A.first - 1)) do add(gid) end
  for _, gid in ipairs(redis.call('ZRANGE', K.parked, 0, A.first - 1)) do add(gid) end
  for _, gid in ipairs(redis.call('ZRANGE', K.ready, 0, A.first - 1)) do add(gid) end
  for _, raw in ipairs(lease.stored(redis.call('ZRANGE', K.active, 0, A.first - 1))) do
    local gid = raw and lease.group_of(raw)
    if gid then add(gid) end
  end
  return '0', gids, gids[1] and redis.call('HMGET', K.groups, unpack(gids)) or {}
end

local function page()
  local scan = redis.call('HSCAN', K.groups, A.cursor, 'COUNT', PAGE)
  local flat, gids, values = scan[2], {}, {}
  for i = 1, #flat / 2 do gids[i], values[i] = flat[2 * i - 1], flat[2 * i] end
  return scan[1], gids, values
end

--- @reads
local cursor, gids, values
if A.first then cursor, gids, values = front() else cursor, gids, values = page() end
local packed, n, glanced = {}, 0, {}
local is_all = group_value.is_all() and not gate.is_everywhere()
local groups = {}
if gids[1] and not is_all then group.build(groups, gids, values, gate.is_everywhere()) end
for i = 1, #gids do
  local gid, value = gids[i], values[i]
  -- Skip the jobs without a group, which are not a group, and damaged values, which repair corrects.
  if gid ~= '' and value and #value >= 11 then
    local g = groups[gid]
    if not g then g = group_value.glance(glanced, gid, value) and glanced or group_value.read(gid, value) end
    local state, head, seq, order, n_waiting = group_state.decide(g), g.head, 0, 0, 0
    if head then
      seq, order = record.seq_of(head), record.order_of(head)
      if A.sizes then n_waiting = waiting.count(g) end
    end
    if g.paused then state = 'paused' elseif g.blocked then state = 'blocked' end
    n = n + 1
    packed[n] = struct.pack(
      '>BBI4I4I4I6d', STATES[state], head and 1 or 0, n_waiting, g.running, g.delayed, seq, order
    ) .. gid
  end
end
return { cursor, redis.call('HLEN', K.groups) - redis.call('HEXISTS', K.groups, ''), packed }
