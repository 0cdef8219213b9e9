--[[
The waiting jobs of a group as they are stored: a sorted set, or only the head in the value of the group, if that job
was added to an empty group and no other job waits (lib/group_value.lua). Only this file depends on the direction of the
sorted set: jobs that start later have smaller sort keys (lib/record.lua), so the job
that starts first is the last member.
]]
--- @include "lib/keys"
--- @include "lib/bytes"
local waiting = { START = '+' }
--- @private
local SORT_KEY = 16 -- bytes of it, at the beginning of a member

-- Whether `one` starts before `other`. Sort keys of two jobs differ, so their ids hardly ever have to be compared.
function waiting.starts_before(one, other)
  if #one < SORT_KEY or #other < SORT_KEY then return bytes.before(other, one) end -- damaged
  local a, b, c = struct.unpack('>I6I6I4', one)
  local d, e, f = struct.unpack('>I6I6I4', other)
  if a ~= d then return a > d end
  if b ~= e then return b > e end
  if c ~= f then return c > f end
  return bytes.before(other, one)
end

-- All members of a group without a sorted set: its head, or none.
local function only(g) return g.alone and { g.was_head } or {} end

-- The `n` members that start first, in that order.
function waiting.first(g, n)
  if g.unset then return only(g) end
  return redis.call('ZRANGE', K.group .. g.id, 0, n - 1, 'REV')
end

-- `n` members in the order in which they start, from `start` on: START, or a value of `waiting.after`.
function waiting.page(g, start, n)
  if not g.unset then
    return redis.call('ZRANGE', K.group .. g.id, start, '-', 'BYLEX', 'REV', 'LIMIT', 0, n)
  end
  local is_behind = start == waiting.START or bytes.before(g.was_head or '', string.sub(start, 2))
  return is_behind and n > 0 and only(g) or {}
end

-- The start of the page after a member, or after all members that begin with the given bytes.
function waiting.after(member) return '(' .. member end

function waiting.count(g)
  if g.unset then return g.alone and 1 or 0 end
  return redis.call('ZCARD', K.group .. g.id)
end

-- The ranks of the `n` members that start first: the lowest and the highest.
function waiting.ranks(n) return -n, -1 end

-- How many members start before this one; false if it does not wait in this group.
function waiting.rank(g, member)
  if g.unset then return g.alone and g.was_head == member and 0 end
  return redis.call('ZREVRANK', K.group .. g.id, member)
end
