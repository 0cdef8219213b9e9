--[[
Read a page of the jobs in one state, without their data. The position of a page stays valid while jobs come and go: a
job that stays in the state during all calls is in one of the pages.

Arguments  for the state 'waiting': kind, limit, and cursor or only; for all others: kind, limit, newest, after, age
  kind        'active', 'delayed', 'completed', 'failed' or 'waiting'
  limit       how many jobs, at most
  newest      true = from the last job back
  after       {score, id} of the last job seen; absent = start
  age         ms, finished jobs only: leave out jobs that ended less than this long ago, to about a second
  cursor      '0' = start
  only        only the jobs of this group
  group       group of the last job seen, if any
Blob       member of the last waiting job seen, if any
Reply      {now, jobs in this state or waiting in that group, the newest stamp, ids, the score of each};
           for 'waiting': members instead of ids, the group of each, and the next cursor if other groups have more,
           '' if these groups have more, false = the end
Events     none
Cost       O(limit + log(jobs)): for 'waiting' about GROUPS groups, one command for each, else at most 6 commands
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/whole"
--- @include "lib/meta"
--- @include "lib/bytes"
--- @include "lib/group"
--- @include "lib/waiting"
local GROUPS = 20

local function count_waiting()
  local n = redis.call('HLEN', K.jobs)
  for _, name in ipairs({ 'active', 'delayed', 'completed', 'failed' }) do n = n - redis.call('ZCARD', K[name]) end
  return math.max(0, n)
end

-- The groups of one scan step, sorted by id. If a page ended in the middle of them, the next call repeats the same step
-- and continues after the last group seen, even if that group is gone by then.
local function some_groups()
  if A.only then return { A.only }, '0' end
  local scan, gids = redis.call('HSCAN', K.groups, A.cursor, 'COUNT', GROUPS), {}
  for i = 1, #scan[2], 2 do
    if not A.group or not bytes.before(scan[2][i], A.group) then gids[#gids + 1] = scan[2][i] end
  end
  table.sort(gids, bytes.before)
  return gids, scan[1]
end

local function waiting_jobs()
  local members, groups, gids, cursor = {}, {}, some_groups()
  group.load(gids)
  for i = 1, #gids do
    local gid, after, left = gids[i], waiting.START, A.limit - #members
    if gid == A.group then after = waiting.after(blob) end
    local found = waiting.page(group.get(gid), after, left)
    for j = 1, #found do members[#members + 1], groups[#groups + 1] = found[j], gid end
    if #found == left then return members, groups, '' end
  end
  return members, groups, cursor ~= '0' and cursor
end

-- The rank of the first job of this page. If the last job seen has moved or is gone, it is the rank of the first job
-- with its score.
local function start(key)
  if not A.after then
    if not A.age then return 0 end
    return redis.call('ZCOUNT', key, whole(now_us - A.age * 1000 + 1000000), '+inf')
  end
  local score, id = A.after[1], A.after[2]
  if redis.call('ZSCORE', key, id) == score then
    return redis.call(A.newest and 'ZREVRANK' or 'ZRANK', key, id) + 1
  elseif A.newest then
    return redis.call('ZCOUNT', key, '(' .. score, '+inf')
  end
  return redis.call('ZCOUNT', key, '-inf', '(' .. score)
end

--- @reads
local newest_stamp = whole(math.max(now_us, meta.stamp))
if A.kind == 'waiting' then
  local total = A.only and waiting.count(group.get(A.only)) or count_waiting()
  return { now, total, newest_stamp, waiting_jobs() }
end
local key, ids, scores = K[A.kind], {}, {}
local first = start(key)
local args = { key, first, first + A.limit - 1 }
if A.newest then args[#args + 1] = 'REV' end
args[#args + 1] = 'WITHSCORES'
local found = redis.call('ZRANGE', unpack(args))
for i = 1, #found, 2 do
  ids[#ids + 1] = found[i]
  scores[#scores + 1] = found[i + 1]
end
return { now, redis.call('ZCARD', key), newest_stamp, ids, scores }
