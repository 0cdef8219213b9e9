--[[
Make a partition from keys that were copied from other partitions. Its numbers start at the highest of theirs, so that
no stamp and no arrival is given twice. A flag is set if it is set in one of them.

Arguments
  sizes       the length of the numbers of each of these partitions
  concurrency  group_concurrency
  rules       lib/meta.lua
  fields      the other fields of `meta`, in pairs: schema, settings and their revision ...
Blob       the numbers of the partitions that the keys were copied from, joined (lib/numbers.lua)
Reply      1
Events     none
Cost       O(partitions), six commands
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/numbers"
local HIGHEST = { 'stamp', 'seq', 'order', 'epoch', 'spared' }
local FLAGS = { 'paused', 'ttls', 'progress', 'large', 'attempts', 'loose', 'uniques' }
local EXACT = { overrides = 'conf', blocks = 'blocked', breakers = 'breakers' } -- each says whether that key exists

local function add(found, other)
  for i = 1, #HIGHEST do found[HIGHEST[i]] = math.max(found[HIGHEST[i]], other[HIGHEST[i]]) end
  for i = 1, #FLAGS do found[FLAGS[i]] = found[FLAGS[i]] or other[FLAGS[i]] end
  found.due = math.min(found.due, other.due)
  local tick = other.repeat_at
  if tick then found.repeat_at = math.min(found.repeat_at or tick, tick) end
end

--- @plain allow-oom
local found, at = numbers.of_new_queue(A.concurrency), 1
for i = 1, #A.sizes do
  local other, raw = {}, string.sub(blob, at, at + A.sizes[i] - 1)
  at = at + A.sizes[i]
  if numbers.is_ours(raw) then
    numbers.read(other, raw)
    add(found, other)
  end
end
for flag, name in pairs(EXACT) do found[flag] = redis.call('EXISTS', K[name]) == 1 end
redis.call('HDEL', K.meta, 'rules', 'measures', 'turn', 'idle', 'offer')
if next(A.rules) then redis.call('HSET', K.meta, 'rules', cmsgpack.pack(A.rules)) end
redis.call('HSET', K.meta, 'numbers', numbers.pack(found), unpack(A.fields))
return 1
