--[[ Block and unblock groups (lib/blocking.lua). ]]
--- @include "lib/call"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/whole"
--- @include "lib/seen"
--- @include "lib/meta"
--- @include "lib/writes"
--- @include "lib/group"
--- @include "lib/events"
--- @include "lib/blocking"
local blocking_changes = {}
--- @private
local NONE = {}

-- The changes of this call. blocked, unblocked: how many groups; new, resolved: job id -> true, and how many they are.
local function changes()
  call.blocking = call.blocking or { blocked = 0, unblocked = 0, new = {}, n_new = 0, resolved = {}, n_resolved = 0 }
  return call.blocking
end

-- Block group `g`, because its job `id` has failed for good. The group waits until the job is resolved.
function blocking_changes.add(g, id)
  local mine = changes()
  mine.new[id], mine.n_new = true, mine.n_new + 1
  W.hset(K.blockers, id, blocking.pack(g.id, now))
  W.zadd(K.blocking, 0, blocking.member(g.id, now, id))
  if not g.blocked then
    g.blocked, mine.blocked = now, mine.blocked + 1
    W.zadd(K.blocked, whole(now), g.id)
    events.publish('blocked', id, g.id)
  end
  meta.blocks = true
  group.touch(g)
end

-- Unblock the group; `id`: the job that was resolved last.
function blocking_changes.unblock(g, id)
  local mine = changes()
  g.blocked, mine.unblocked = nil, mine.unblocked + 1
  W.zrem(K.blocked, g.id)
  events.publish('unblocked', id, g.id)
  group.touch(g)
end

-- Resolve a job, so that it no longer blocks its group. Returns false if it did not block it.
function blocking_changes.resolve(id)
  local raw = meta.blocks and not changes().resolved[id] and redis.call('HGET', K.blockers, id)
  if not raw then return false end
  seen.add(K.blockers)
  local mine, gid, since = changes(), blocking.unpack(raw)
  mine.resolved[id], mine.n_resolved = true, mine.n_resolved + 1
  W.hdel(K.blockers, id)
  W.zrem(K.blocking, blocking.member(gid, since, id))
  local g = group.get(gid)
  g.blockers = (g.blockers or blocking.count(gid)) - 1
  if g.blockers == 0 and g.blocked then blocking_changes.unblock(g, id) end
  return true
end

-- How many jobs block their group, with the changes of this call.
function blocking_changes.total()
  if not meta.blocks then return 0 end
  local mine = changes()
  return redis.call('HLEN', K.blockers) - mine.n_resolved + mine.n_new
end

-- Whether the job started to block its group in this call.
function blocking_changes.is_new(id) return call.blocking ~= nil and call.blocking.new[id] end

-- For each of `ids`, jobs that had failed before this call: whether it blocks its group.
function blocking_changes.are(ids)
  if not ids[1] then return NONE end
  local resolved, found = changes().resolved, redis.call('HMGET', K.blockers, unpack(ids))
  for i = 1, #ids do found[i] = found[i] and not resolved[ids[i]] end
  return found
end

-- Clear `blocks` if no group is blocked any more. Runs at the end of the call.
function blocking_changes.note()
  local mine = call.blocking
  if mine.unblocked == 0 or mine.blocked > 0 then return end
  if redis.call('ZCARD', K.blocked) == mine.unblocked then meta.blocks, meta.spared = false, 0 end
end
