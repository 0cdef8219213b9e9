--[[ Repair the entries of failed jobs that block their groups (lib/blocking.lua). ]]
--- @include "lib/keys"
--- @include "lib/whole"
--- @include "lib/meta"
--- @include "lib/record"
--- @include "lib/writes"
--- @include "lib/group"
--- @include "lib/blocking"
--- @include "lib/blocking_changes"
--- @include "lib/repair/repair"
--- @private

local function report(kind, id)
  repair.report(kind, id)
  meta.spared = 0 -- lib/retention.lua finds it out again
end

-- Set the flag in `meta` if it is lost. Without it no call would read `blocked`, and blocked groups would start jobs.
-- Called before a group is loaded.
local function raise_flag(names)
  if names[1] and not meta.blocks then
    meta.blocks = true
    report('blocked groups that no call looks for', 'blocks')
  end
end

-- Unblock the group if no job is left that blocks it; `gone`: members of `blocking` that this call removes.
local function unblock_if_free(gid, gone)
  local g = group.get(gid)
  g.blockers = (g.blockers or blocking.count(gid)) - gone
  if g.blockers == 0 and g.blocked then blocking_changes.unblock(g, '') end
end

-- Whether the value names the group of a job that has failed.
local function is_right(raw, id)
  if #raw < 6 then return false end
  local rec = redis.call('HGET', K.jobs, id)
  return rec and record.group_of(rec) == (blocking.unpack(raw)) and redis.call('ZSCORE', K.failed, id)
end

-- Every job that blocks a group must be a failed job of that group. The job must be in `blocking`, and the group in
-- `blocked`.
function repair.blockers(ids)
  raise_flag(ids)
  for i = 1, #ids do
    local id, raw = ids[i], redis.call('HGET', K.blockers, ids[i])
    if not is_right(raw, id) then
      report('blocking job that has not failed', id)
      W.hdel(K.blockers, id)
      if #raw >= 6 then
        local gid, since = blocking.unpack(raw)
        local member = blocking.member(gid, since, id)
        local listed = redis.call('ZSCORE', K.blocking, member)
        if listed then W.zrem(K.blocking, member) end
        unblock_if_free(gid, listed and 1 or 0)
      end
    else
      local gid, since = blocking.unpack(raw)
      local member, g = blocking.member(gid, since, id), group.get(gid)
      if not redis.call('ZSCORE', K.blocking, member) then
        report('blocking job that is not listed', id)
        W.zadd(K.blocking, 0, member)
        if g.blockers then g.blockers = g.blockers + 1 end
      end
      if not g.blocked then
        report('group that its failed job does not block', gid)
        g.blocked, g.at = since, 'unknown'
        W.zadd(K.blocked, whole(since), gid)
        group.touch(g)
      end
    end
  end
end

function repair.blocking(members)
  raise_flag(members)
  for i = 1, #members do
    local readable, gid, id, since = pcall(blocking.parts, members[i])
    if not readable or redis.call('HGET', K.blockers, id) ~= blocking.pack(gid, since) then
      report('listed job that blocks no group', readable and id or 'unreadable')
      W.zrem(K.blocking, members[i])
      if readable then unblock_if_free(gid, 1) end
    end
  end
end

function repair.blocked(gids)
  raise_flag(gids)
  for i = 1, #gids do
    if blocking.count(gids[i]) == 0 then
      report('group that no job blocks', gids[i])
      group.get(gids[i]).at = 'unknown'
      unblock_if_free(gids[i], 0)
    end
  end
end
