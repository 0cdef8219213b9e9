--[[
The unit of work. Scripts do not roll back, so no transition writes by itself: each one notes here what should
change, reads see the notes (lib/group.lua), and `W.commit` sends them at the very end as few vector commands.
An error before that point leaves the keyspace untouched; nothing in commit can fail half-way.

`unpack` fails near 8,000 values, hence CHUNK.
]]
--- @include "lib/keys"
local W = { zsets = {}, hashes = {}, lists = {}, counters = {} }
local CHUNK = 4000

local function note(book, key, field, value)
  local fields = book[key]
  if not fields then
    fields = {}
    book[key] = fields
  end
  fields[field] = value
end

function W.zadd(key, score, member) note(W.zsets, key, member, score) end
function W.zrem(key, member) note(W.zsets, key, member, false) end
function W.hset(key, field, value) note(W.hashes, key, field, value) end
function W.hdel(key, field) note(W.hashes, key, field, false) end
function W.count(counter, n) W.counters[counter] = (W.counters[counter] or 0) + n end

-- Newest first, never more than `keep` entries.
function W.push(key, value, keep)
  local list = W.lists[key]
  if not list then
    list = { keep = keep }
    W.lists[key] = list
  end
  list[#list + 1] = value
end

local function send(command, key, values, n)
  local from = 1
  while from <= n do
    local to = math.min(from + CHUNK - 1, n)
    redis.call(command, key, unpack(values, from, to))
    from = to + 1
  end
end

local function remove_all(book, command)
  local any = false
  for key, fields in pairs(book) do
    local values, n = {}, 0
    for field, value in pairs(fields) do
      if value == false then
        n = n + 1
        values[n] = field
      end
    end
    if n > 0 then
      send(command, key, values, n)
      any = true
    end
  end
  return any
end

local function set_all(book, command, value_first)
  for key, fields in pairs(book) do
    local values, n = {}, 0
    for field, value in pairs(fields) do
      if value ~= false then
        if value_first then
          values[n + 1], values[n + 2] = value, field
        else
          values[n + 1], values[n + 2] = field, value
        end
        n = n + 2
      end
    end
    send(command, key, values, n)
  end
end

local function free()
  local any = remove_all(W.zsets, 'ZREM')
  return remove_all(W.hashes, 'HDEL') or any
end

-- A server out of memory refuses a script whose first write allocates and lets one run to the end whose first write
-- frees. So an `add` allocates first, and everything that reports, recovers or drains frees first.
function W.commit(allocates)
  if W.sequences then W.sequences() end
  if not allocates and not free() then
    redis.call('HDEL', K.meta, '')
  end
  set_all(W.hashes, 'HSET', false)
  set_all(W.zsets, 'ZADD', true)
  if allocates then free() end
  for key, list in pairs(W.lists) do
    send('LPUSH', key, list, #list)
    redis.call('LTRIM', key, 0, list.keep - 1)
  end
  for counter, n in pairs(W.counters) do
    redis.call('HINCRBY', K.meta, counter, n)
  end
end
