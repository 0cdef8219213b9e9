--[[
The unit of work. The server does not roll back a call, so no transition writes directly: each one notes its changes
here, reads take the notes into account (lib/group.lua), and at the very end of the call lib/sending.lua sends them as
few commands with many arguments. An error before that leaves the keyspace untouched.

Each kind of key has one function that adds and one that removes:

  sorted set  W.zadd, W.zrem
  hash        W.hset, W.hdel
  list        W.push; W.unlink deletes a key of any kind

Each of them appends to one list of arguments per key, which becomes one command. Where many jobs are handled, that list
is fetched once with `W.list`, or made by the caller and handed over with `W.give`.

All removals are sent before all additions: an entry that is removed and added in one call exists afterwards. An entry
that is added and then dropped in the same call must not be noted at all, so lib/members.lua and lib/state_changes.lua
keep their own lists and note them when the outcome is known (lib/group_changes.lua, lib/writing.lua).

`unpack` fails near 8,000 values, hence CHUNK.
]]
--- @include "lib/call"
local W = {}
local CHUNK = 4000
--- @private
local PUTS, NONE = { ZADD = true, HSET = true, LPUSH = true }, {}

-- Fields of `call`: removals, additions: flat lists of command, key, arguments. drops, puts: key -> the arguments that
-- further removals or additions of that key are appended to. given: key -> how many removals were handed over. kept:
-- key of a list -> how many of its newest entries stay. unlinked: keys.
local function note(order, command, key, list)
  local n = #order
  order[n + 1], order[n + 2], order[n + 3] = command, key, list
end

local function list_in(lists, order, command, key)
  local list = lists[key]
  if not list then
    list = {}
    lists[key] = list
    note(order, command, key, list)
  end
  return list
end

-- The arguments of `command` for `key`; the caller appends to them.
function W.list(command, key)
  if PUTS[command] then return list_in(call.puts, call.additions, command, key) end
  return list_in(call.drops, call.removals, command, key)
end

-- Hand over a whole list of arguments. Several keys may share it, so it must not change from now on.
function W.give(command, key, list)
  if list[1] == nil then return end
  if PUTS[command] then return note(call.additions, command, key, list) end
  note(call.removals, command, key, list)
  call.given = call.given or {}
  call.given[key] = (call.given[key] or 0) + #list
end

-- How many arguments of `command` are noted for `key` so far. Additions that were handed over do not count.
function W.noted(command, key)
  if PUTS[command] then return #(call.puts[key] or NONE) end
  return #(call.drops[key] or NONE) + ((call.given or NONE)[key] or 0)
end

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

function W.zrem(key, member)
  local list = call.drops[key]
  if not list then return drop_first('ZREM', key, member) end
  list[#list + 1] = member
end

function W.hset(key, field, value)
  local list = call.puts[key]
  if not list then return put_first('HSET', key, field, value) end
  local n = #list
  list[n + 1], list[n + 2] = field, value
end

function W.hdel(key, field)
  local list = call.drops[key]
  if not list then return drop_first('HDEL', key, field) end
  list[#list + 1] = field
end

-- Delete a whole key for which nothing else is noted.
function W.unlink(key)
  call.unlinked = call.unlinked or {}
  call.unlinked[#call.unlinked + 1] = key
end

-- Push `value` to the front of a list, `times` times (default 1); the list keeps its newest `keep` entries.
function W.push(key, value, keep, times)
  local list = list_in(call.puts, call.additions, 'LPUSH', key)
  local n = #list
  for i = n + 1, n + (times or 1) do list[i] = value end
  call.kept = call.kept or {}
  call.kept[key] = keep
end
