--[[
The unit of work. Scripts do not roll back, so no transition writes by itself: each one notes here what should
change, reads see the notes (lib/group.lua), and `W.commit` sends them at the very end as few vector commands.
An error before that point leaves the keyspace untouched; nothing in commit can fail half-way.

All removals go out before all additions: what is removed and added in one call is there afterwards. What is added
and then given up in the same call must not be noted at all, so lib/group.lua and lib/state.lua keep their own notes
and hand them over when the outcome is known (`W.before_commit`).

Lists of notes are plain arrays, taken once with `W.list` where many jobs pass; `unpack` fails near 8,000 values,
hence CHUNK.
]]
--- @include "lib/keys"
local W = { before_commit = {} }
local CHUNK = 4000
--- @private
local NONE = {}
local notes = { ZREM = {}, HDEL = {}, HSET = {}, ZADD = {}, LPUSH = {} }
local whole = { ZREM = {}, HDEL = {} } -- {key, arguments}
local counters = {}
local kept = {} -- of a list that gets LPUSH: how many of its newest stay
local unlinked = {}
local lost_keys, lost, n_lost = {}, {}, 0
local popped_keys, popped, n_popped = {}, {}, 0
local gained_keys, gained, n_gained = {}, {}, 0

-- The arguments that `command` will get for `key`; append to it.
function W.list(command, key)
  local list = notes[command][key]
  if not list then
    list = {}
    notes[command][key] = list
  end
  return list
end

-- A ready-made list of arguments, for a key that gets no others.
function W.give(command, key, list) notes[command][key] = list end

-- A ready-made list of things to remove, beside what else is noted for the key. Several keys may share it: from now on
-- nobody changes it.
function W.all(command, key, list)
  local lists = whole[command]
  if list[1] then lists[#lists + 1] = { key, list } end
end

-- How many arguments there are for `key` by now.
function W.noted(command, key)
  local n, lists = #(notes[command][key] or NONE), whole[command] or NONE
  for i = 1, #lists do
    if lists[i][1] == key then n = n + #lists[i][2] end
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

-- One member of a key that loses no other: what taking a job does to its group.
function W.zrem_one(key, member)
  n_lost = n_lost + 1
  lost_keys[n_lost], lost[n_lost] = key, member
end

-- The last `n` members of a key that loses no others: they go at once, instead of each being looked for.
function W.pop(key, n)
  n_popped = n_popped + 1
  popped_keys[n_popped], popped[n_popped] = key, n
end

-- One member, of score 0, of a key that gains no other: what most adds do to a group.
function W.zadd_one(key, member)
  n_gained = n_gained + 1
  gained_keys[n_gained], gained[n_gained] = key, member
end

function W.hset(key, field, value)
  local list = W.list('HSET', key)
  list[#list + 1] = field
  list[#list + 1] = value
end

function W.hdel(key, field)
  local list = W.list('HDEL', key)
  list[#list + 1] = field
end

-- A whole key, of which nothing else is noted.
function W.unlink(key) unlinked[#unlinked + 1] = key end

-- A new first entry, or `times` of them, of a list that keeps its newest `keep`.
function W.push(key, value, keep, times)
  local list = W.list('LPUSH', key)
  local n = #list
  for i = n + 1, n + (times or 1) do list[i] = value end
  kept[key] = keep
end

function W.count(counter, n) counters[counter] = (counters[counter] or 0) + n end
function W.counted() return counters end

-- A whole number as text, exact, without the detour through scientific notation.
function W.whole(number) return string.format('%d', number) end

local function send_list(command, key, list)
  local n = #list
  for from = 1, n, CHUNK do
    redis.call(command, key, unpack(list, from, math.min(from + CHUNK - 1, n)))
  end
  return n > 0
end

-- True if there was anything to send.
local function send(command)
  local any, lists = false, whole[command] or NONE
  for i = 1, #lists do any = send_list(command, lists[i][1], lists[i][2]) end
  for key, list in pairs(notes[command]) do any = send_list(command, key, list) or any end
  return any
end

-- A server out of memory refuses a script whose first write allocates and lets one run to the end whose first write
-- frees. So an `add` allocates first, and everything that reports, recovers or drains frees first.
function W.commit(allocates)
  for i = 1, #W.before_commit do W.before_commit[i]() end
  if allocates then redis.call('HSET', K.meta, 'schema', SCHEMA) end
  for i = 1, n_lost do redis.call('ZREM', lost_keys[i], lost[i]) end
  for i = 1, n_popped do redis.call('ZREMRANGEBYRANK', popped_keys[i], -popped[i], -1) end
  local zrem, hdel = send('ZREM'), send('HDEL')
  if unlinked[1] then redis.call('UNLINK', unpack(unlinked)) end
  if not (allocates or zrem or hdel or n_lost + n_popped > 0) then redis.call('HDEL', K.meta, '') end
  send('HSET')
  send('ZADD')
  for i = 1, n_gained do redis.call('ZADD', gained_keys[i], 0, gained[i]) end
  for counter, n in pairs(counters) do redis.call('HINCRBY', K.meta, counter, n) end
  send('LPUSH')
  for key, keep in pairs(kept) do redis.call('LTRIM', key, 0, keep - 1) end
  if W.log then W.log() end
end
