--[[
The waiting jobs of a group: its sorted set as this call leaves it, head last (lib/record.lua), which everything here
looks at from that end. What was put and dropped is kept with the group and
written when it is settled; the head is always known, read from the set only when the one before it went.
]]
--- @include "lib/group"
local members = {}
--- @private
local NONE = {}

-- Read the first `n` stored members, so that taking them one by one needs no further look.
function members.look_ahead(g, n)
  if g.stored and (g.known_all or #g.stored >= n) then return end
  g.stored = redis.call('ZRANGE', group.key(g), 0, n - 1, 'REV')
  g.known_all = #g.stored < n
  g.pos = 1
end

-- The first waiting member, this call's own changes applied, read anew.
local function find_head(g)
  local removed, pos = g.removed or NONE, g.pos or 1
  members.look_ahead(g, #removed + 1)
  while g.stored[pos] and removed[g.stored[pos]] do
    pos = pos + 1
    if not g.stored[pos] and not g.known_all then members.look_ahead(g, 2 * pos) end
  end
  g.pos = pos
  local first, added = g.stored[pos] or false, g.added or NONE
  for i = 2, #added, 2 do
    if not first or added[i] > first then first = added[i] end
  end
  return first
end

-- `added` and `removed` are kept as the arguments ZADD and ZREM will get; `removed` is a set as well. `popped` is how
-- many went off the front as a row: their group is full then, and loses no others in this call.
function members.put(g, member)
  local added = g.added
  if added then
    added[#added + 1] = 0
    added[#added + 1] = member
  else
    g.added = { 0, member }
  end
  if not g.head or member > g.head then
    g.head = member
    group.touch(g)
  elseif not g.touched then
    group.enlist(g) -- behind the head: nothing but the zset changes
  end
end

-- Give up a member that this call has put; false if it has not.
local function take_back(g, member)
  local added = g.added or NONE
  for i = 2, #added, 2 do
    if added[i] == member then
      table.remove(added, i)
      table.remove(added, i - 1)
      return true
    end
  end
  return false
end

function members.drop(g, member)
  if not (g.added and take_back(g, member)) then
    local removed = g.removed
    if removed then
      removed[#removed + 1], removed[member] = member, true
    else
      g.removed = { member, [member] = true }
    end
  end
  if member == g.head then g.head = find_head(g) end
  if g.holds then group.release(g, record.id_of(member)) end
  group.touch(g)
end

-- Take the head out, to run it; `ahead` more may follow in this call. Returns the member.
function members.pop(g, ahead)
  local member = g.head
  if g.stored or g.added or g.removed then
    members.drop(g, member)
    return member
  end
  if ahead > 1 or g.holds then
    members.look_ahead(g, ahead + 1)
    members.drop(g, member)
    return member
  end
  -- One job and no more: the common case, without the book-keeping of the general one.
  local key = K.group .. g.id
  local stored = redis.call('ZRANGE', key, 0, 1, 'REV')
  g.stored, g.known_all, g.pos = stored, not stored[2], 1
  if stored[1] == member then
    W.zrem_one(key, member)
    g.head, g.pos = stored[2] or false, 2
    group.touch(g)
  else
    members.drop(g, member)
  end
  return member
end

-- Take the head out; some of those behind it, as urgent as it is, may follow: `n` in all. Returns the member, and how
-- many they are with it: the first ones in `g.stored`. Where this call has changed the group before, none may follow.
function members.pop_row(g, n)
  if g.stored or g.added or g.removed or g.holds then return members.pop(g, 1), 1 end
  local member, key = g.head, K.group .. g.id
  local stored = redis.call('ZRANGE', key, 0, n, 'REV')
  g.stored, g.known_all, g.pos = stored, #stored <= n, 1
  if stored[1] ~= member then
    members.drop(g, member)
    return member, 1
  end
  local last, priority = math.min(#stored, n), record.priority_of(member)
  while record.priority_of(stored[last]) ~= priority do last = last - 1 end
  g.popped, g.head, g.pos = 1, stored[2] or false, 2
  group.touch(g)
  return member, last
end

-- The next `n` follow the one that was taken before them, to run after it. (No group.start: what else that does is for
-- groups that have no rows.)
function members.follow(g, n)
  g.running, g.popped, g.pos = g.running + n, g.popped + n, g.pos + n
  g.head = g.stored[g.pos] or false
end

-- Forget what the stored value says of the head; for groups that cannot be trusted.
function members.reread(g)
  g.stored, g.pos, g.at = false, 1, 'unknown'
  g.head = find_head(g)
  group.touch(g)
end
