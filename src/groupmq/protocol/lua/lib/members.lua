--[[
The waiting jobs of a group: its sorted set with the changes of this call. The head is the last member
(lib/record.lua), and all functions work from that end. Added and removed members are kept with the group until the end
of the call (lib/group_changes.lua). The head is always known; it is read from the set only when the previous head was
removed.
]]
--- @include "lib/keys"
--- @include "lib/record"
--- @include "lib/writes"
--- @include "lib/group"
--- @include "lib/heads"
--- @include "lib/waiting"
--- @include "lib/prefetch"
local members = {}
--- @private
local NONE = {}
local SCORE = '0' -- of every member; as text, because the server formats a number for each command

-- `added` and `removed` are the arguments for ZADD and ZREM; `removed` is a set as well. `popped`: how many jobs, a
-- head and the jobs prefetched behind it, were taken together. This call has removed no member before them, so they are
-- deleted by rank. `undone`: a set of members that were added and dropped again.
function members.put(g, member)
  local added = g.added
  if added and g.undone and g.undone[member] then
    g.undone[member], g.sorted_of = nil, 0
  elseif added then
    added[#added + 1] = SCORE
    added[#added + 1] = member
  else
    g.added = { SCORE, member }
  end
  if not g.head or waiting.starts_before(member, g.head) then
    g.head = member
    group.touch(g)
  elseif not g.touched then
    group.enlist(g) -- it is behind the head: only the zset changes
  end
end

-- The arguments for ZADD: all members that this call has put and not dropped again.
function members.to_add(g)
  if not g.undone then return g.added end
  local added = {}
  for i = 2, #g.added, 2 do
    local member = g.added[i]
    if not g.undone[member] then added[#added + 1], added[#added + 2] = SCORE, member end
  end
  return added
end

function members.drop(g, member)
  if g.added and heads.newcomers(g)[member] then
    g.undone = g.undone or {}
    g.undone[member] = true
  else
    local removed = g.removed
    if removed then
      removed[#removed + 1], removed[member] = member, true
    else
      g.removed = { member, [member] = true }
    end
  end
  if member == g.head then g.head = heads.find(g) end
  if g.holds then group.release(g, record.id_of(member)) end
  group.touch(g)
end

-- Take the head out to run it; `n` jobs of the group may be taken in this call. Returns the member.
function members.pop(g, n)
  local member = g.head
  if g.stored or g.added or g.removed then
    members.drop(g, member)
    return member
  end
  if n > 1 or g.holds then
    heads.look_ahead(g, n + 1)
    members.drop(g, member)
    return member
  end
  if g.unset then return members.pop_only(g, member) end
  -- Exactly one job, the common case, without the bookkeeping of the general case.
  local key = K.group .. g.id
  local stored = waiting.first(g, 2)
  g.stored, g.known_all, g.pos = stored, not stored[2], 1
  if stored[1] == member then
    W.zrem(key, member)
    g.head, g.pos = stored[2] or false, 2
    group.touch(g)
  else
    members.drop(g, member)
  end
  return member
end

-- Take out the head of a group in which no other job waits, the most frequent case. Nothing has to be read, and there
-- is no sorted set to remove it from.
function members.pop_only(g, member)
  g.stored, g.known_all, g.pos, g.head, g.alone = NONE, true, 1, false, false
  group.touch(g)
  return member
end

-- Take the head out; jobs behind it with the same priority may be prefetched, `n` jobs in all. Returns the member, and
-- how many jobs may be taken, which are the first ones in `g.stored`. It is only the head if this call has changed the
-- group before.
function members.pop_row(g, n)
  if g.stored or g.added or g.removed or g.holds then return members.pop(g, 1), 1 end
  local member = g.head
  if g.unset then return members.pop_only(g, member), 1 end
  local stored = waiting.first(g, n + 1)
  g.stored, g.known_all, g.pos = stored, #stored <= n, 1
  if stored[1] ~= member then
    members.drop(g, member)
    return member, 1
  end
  g.popped, g.head, g.pos = 1, stored[2] or false, 2
  group.touch(g)
  return member, prefetch.row_length(stored, n)
end

-- Prefetch the next `n` jobs behind the head that was taken. group.start is not called: besides taking a slot it counts
-- starts for rates and tickets, and groups that need those prefetch nothing.
function members.follow(g, n)
  g.running, g.popped, g.pos = g.running + n, g.popped + n, g.pos + n
  g.head = g.stored[g.pos] or false
end

-- Read the head from the sorted set again, for a group whose stored value may be damaged. A head that was alone joins
-- the sorted set, which may have other members.
function members.reread(g)
  local alone = g.alone and g.head
  g.stored, g.pos, g.at, g.unset, g.alone = false, 1, 'unknown', false, false
  g.head = heads.find(g)
  if alone then members.put(g, alone) end
  group.touch(g)
end
