--[[
Jobs that block their group: they have failed for good under `on_failed="hold"`. No job of the group starts until each
of them is resolved: a person has redriven it, skipped it (skip.lua) or removed it. Jobs that were already running end
as usual.

  blocked   zset  group, by the time since which it is blocked
  blockers  hash  job id -> since when it blocks (6 bytes, ms), group
  blocking  zset  score 0: length of the group id (2 bytes), group, since when (6 bytes), job id. So the jobs of a group
                  are adjacent, and the one that has blocked longest is the first of them

`blocks` in `meta` is 1 while there may be any, so that calls of a queue without them read nothing.
lib/blocking_changes.lua writes all of these, and lib/repair/blocking.lua repairs them.
]]
--- @include "lib/keys"
local blocking = {}
--- @private

function blocking.pack(gid, since) return struct.pack('>I6', since) .. gid end

-- The group in a value of `blockers`, and since when the job blocks it.
function blocking.unpack(raw) return string.sub(raw, 7), (struct.unpack('>I6', raw)) end

local function prefix(gid) return struct.pack('>I2', #gid) .. gid end

function blocking.member(gid, since, id) return prefix(gid) .. struct.pack('>I6', since) .. id end

-- The group and the job in a member of `blocking`, and since when the job blocks the group.
function blocking.parts(member)
  local gid, since, after = struct.unpack('>I2c0I6', member)
  return gid, string.sub(member, after), since
end

-- The bounds of a group's members in `blocking`: no time begins with the byte 255.
local function bounds(gid)
  local first = prefix(gid)
  return '[' .. first, '[' .. first .. '\255'
end

-- How many jobs block the group.
function blocking.count(gid) return redis.call('ZLEXCOUNT', K.blocking, bounds(gid)) end

-- The ids of the first `n` jobs that block the group.
function blocking.first(gid, n)
  local low, high = bounds(gid)
  local found = redis.call('ZRANGE', K.blocking, low, high, 'BYLEX', 'LIMIT', 0, n)
  for i = 1, #found do
    local _, id = blocking.parts(found[i])
    found[i] = id
  end
  return found
end
