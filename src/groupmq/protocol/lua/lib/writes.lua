--[[
The unit of work. The server does not roll back a call, so no transition writes directly: each one notes its changes
here, reads take the notes into account (lib/group.lua), and at the very end of the call lib/sending.lua sends them as
few commands with many arguments. An error before that leaves the keyspace untouched.

Each kind of key has one verb that puts and one that removes, each for one entry and for a whole list of them:

  sorted set  W.zadd, W.zadd_all    W.zrem, W.zrem_all, by rank W.zrem_ranks
  hash        W.hset, W.hset_all    W.hdel, W.hdel_all
  list        W.push                it keeps its newest entries
  any key                           W.unlink

What is noted one by one becomes one command per key. A whole list is sent as it is, and must not change from then on.

All removals are sent before all additions: an entry that is removed and added in one call exists afterwards. An entry
that is added and then dropped in the same call must not be noted at all, so lib/members.lua and lib/state_changes.lua
keep their own lists and note them when the outcome is known (lib/group_changes.lua, lib/writing.lua).

`unpack` fails near 8,000 values, hence CHUNK.
]]
--- @include "lib/call"
local W = {}
local CHUNK = 4000
--- @private
local NONE = {}

-- Fields of `call`: removals, additions: flat lists of command, key, arguments. drops, puts: key -> the arguments that
-- further removals or additions of that key are appended to. given: key -> how many removals came as whole lists. kept:
-- key of a list -> how many of its newest entries stay. unlinked: keys.
local function note(order, command, key, list)
  local n = #order
  order[n + 1], order[n + 2], order[n + 3] = command, key, list
end

-- Note a whole list. Later additions to the same key are appended to it.
local function put_all(command, key, list)
  if list[1] == nil then return end
  if not call.puts[key] then call.puts[key] = list end
  note(call.additions, command, key, list)
end

-- Several keys may share the list.
local function drop_all(command, key, list)
  if list[1] == nil then return end
  note(call.removals, command, key, list)
  call.given = call.given or {}
  call.given[key] = (call.given[key] or 0) + #list
end

-- How many entries of `key` are removed so far.
function W.n_removed(key) return #(call.drops[key] or NONE) + ((call.given or NONE)[key] or 0) end

-- Whether anything is put into `key` so far.
function W.is_put(key) return call.puts[key] ~= nil end

-- The first arguments for a key: a table that is made with them need not grow.
local function put_first(command, key, one, other)
  local list = { one, other }
  call.puts[key] = list
  note(call.additions, command, key, list)
end

local function drop_first(command, key, one)
  local list = { one }
  call.drops[key] = list
  note(call.removals, command, key, list)
end

function W.zadd(key, score, member)
  local list = call.puts[key]
  if not list then return put_first('ZADD', key, score, member) end
  local n = #list
  list[n + 1], list[n + 2] = score, member
end

-- `list`: score, member ...
function W.zadd_all(key, list) put_all('ZADD', key, list) end

function W.zrem(key, member)
  local list = call.drops[key]
  if not list then return drop_first('ZREM', key, member) end
  list[#list + 1] = member
end

function W.zrem_all(key, members) drop_all('ZREM', key, members) end

-- Remove the members of these ranks, without a search for each. No other removal of the key may be noted before.
function W.zrem_ranks(key, first, last) drop_all('ZREMRANGEBYRANK', key, { first, last }) end

function W.hset(key, field, value)
  local list = call.puts[key]
  if not list then return put_first('HSET', key, field, value) end
  local n = #list
  list[n + 1], list[n + 2] = field, value
end

-- `list`: field, value ...
function W.hset_all(key, list) put_all('HSET', key, list) end

function W.hdel(key, field)
  local list = call.drops[key]
  if not list then return drop_first('HDEL', key, field) end
  list[#list + 1] = field
end

function W.hdel_all(key, fields) drop_all('HDEL', key, fields) end

-- Delete a whole key for which nothing else is noted.
function W.unlink(key)
  call.unlinked = call.unlinked or {}
  call.unlinked[#call.unlinked + 1] = key
end

-- Push `value` to the front of a list, `times` times (default 1); the list keeps its newest `keep` entries.
function W.push(key, value, keep, times)
  local list = call.puts[key]
  if not list then
    list = {}
    call.puts[key] = list
    note(call.additions, 'LPUSH', key, list)
  end
  local n = #list
  for i = n + 1, n + (times or 1) do list[i] = value end
  call.kept = call.kept or {}
  call.kept[key] = keep
end
