--[[
The unit of work. The server does not roll back a call, so no transition writes directly: each one notes its changes
here, reads take the notes into account (lib/group.lua), and at the very end of the call lib/sending.lua sends them as
few commands with many arguments. An error before that leaves the keyspace untouched.

All removals are sent before all additions: what is removed and added in one call is there afterwards. What is added and
then given up in the same call must not be noted at all, so lib/members.lua and lib/state_changes.lua keep their own
lists and note them when the outcome is known (lib/settle.lua, lib/writing.lua).

Lists of notes are plain arrays, fetched once with `W.list` where many jobs are handled. `unpack` fails near 8,000
values, hence CHUNK.
]]
--- @include "lib/call"
local W = {}
local CHUNK = 4000
--- @private
local NONE = {}

-- Fields of `call`: ZADD, ZREM, HSET, HDEL, LPUSH: key -> arguments. shared: lists of {command, key, arguments}. kept:
-- key of a list that gets LPUSH -> how many of its newest entries stay. unlinked: keys. lost, popped, gained: flat, a
-- key and its argument. unseen: sorted sets of groups that are written and were not read.
local function list_of(name)
  local list = call[name] or {}
  call[name] = list
  return list
end

local function append(name, one, other)
  local list = list_of(name)
  local n = #list
  list[n + 1], list[n + 2] = one, other
end

-- The arguments of `command` for `key`; the caller appends to them.
function W.list(command, key)
  local lists = list_of(command)
  local list = lists[key]
  if not list then
    list = {}
    lists[key] = list
  end
  return list
end

-- Use `list` as all arguments of `command` for a key that gets no others.
function W.give(command, key, list) list_of(command)[key] = list end

-- Remove a whole list from a key, beside what else is noted for the key. Several keys may share the list, so it must
-- not change from now on.
function W.all(command, key, list)
  if list[1] then append('shared', { command, key, list }) end
end

-- How many arguments of `command` are noted for `key` so far.
function W.noted(command, key)
  local n, shared = #((call[command] or NONE)[key] or NONE), call.shared or NONE
  for i = 1, #shared do
    if shared[i][1] == command and shared[i][2] == key then n = n + #shared[i][3] end
  end
  return n
end

function W.zadd(key, score, member)
  local list = W.list('ZADD', key)
  list[#list + 1] = score
  list[#list + 1] = member
end

function W.zrem(key, member)
  local list = W.list('ZREM', key)
  list[#list + 1] = member
end

-- Remove one member of a key that was read and loses no other member: the usual case when a job is taken.
function W.zrem_one(key, member) append('lost', key, member) end

-- Remove the last `n` members of a key that was read and loses no others, by rank instead of searching for each.
function W.pop(key, n) append('popped', key, n) end

-- Add one member with score 0 to a key that gets no other: the usual case when a job is added.
function W.zadd_one(key, member) append('gained', key, member) end

-- A sorted set of a group that is written without having been read: lib/sending.lua checks it.
function W.unseen(key) append('unseen', key) end

function W.hset(key, field, value)
  local list = W.list('HSET', key)
  list[#list + 1] = field
  list[#list + 1] = value
end

function W.hdel(key, field)
  local list = W.list('HDEL', key)
  list[#list + 1] = field
end

-- Delete a whole key for which nothing else is noted.
function W.unlink(key) append('unlinked', key) end

-- Push `value` to the front of a list, `times` times (default 1); the list keeps its newest `keep` entries.
function W.push(key, value, keep, times)
  local list = W.list('LPUSH', key)
  local n = #list
  for i = n + 1, n + (times or 1) do list[i] = value end
  list_of('kept')[key] = keep
end
