--[[
Check and repair one page of one structure. The client goes through all structures.

Arguments
  structure   'jobs', 'groups', 'group', 'ready', 'parked', 'repeats', 'ticks', 'stops', 'stopping', 'blockers',
              'blocking', 'blocked', 'breakers', 'breaking', 'opened', 'unique', 'uniques', 'bodies';
              an index of job ids: 'state', 'results', 'leases', 'progress', 'logs', 'interrupts', 'active', 'delayed',
              'completed', 'failed', 'expiring';
              'keys': find groups that `groups` does not list; 'delayed groups': name the group of each delayed job;
              'delayed counts': compare the counts that follow from it
  cursor      '0' = start
  group       group id, for 'group'
  groups      group ids, for 'delayed counts' (lib/repair/groups.lua)
  counts      delayed jobs of each, for 'delayed counts'
  prints      fingerprints of their values, for 'delayed counts'; absent = do not repair yet
Reply      {next cursor ('0' = end), how many entries were checked, damage, flat: kind, id ...,
            of 'keys' the groups found; of 'delayed groups', flat: job, group ...; of 'delayed counts' the groups that
            disagree, flat: group, fingerprint ...}
Events     drained, if the last group turns out to be empty; unblocked, if no job blocks a group; removed, if
           the data of a job is lost
Cost       about 50 entries per call ('keys': 500 keys), some 10 commands each; structures of groups also count the
           leases, up to 5,000 of them; where a server cannot scan without values, up to 1,000 names of 'bodies'
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/group"
--- @include "lib/repair/repair"
--- @include "lib/meta"
--- @include "lib/repair/jobs"
--- @include "lib/repair/bodies"
--- @include "lib/repair/groups"
--- @include "lib/repair/repeats"
--- @include "lib/repair/blocking"
--- @include "lib/repair/entries"
local HASHES = { state = true, results = true, leases = true, progress = true, logs = true, interrupts = true }
local PAGE, SAMPLE = 50, 1000

local function page(command, key)
  local scan = redis.call(command, key, A.cursor, 'COUNT', PAGE)
  local names = {}
  for i = 1, #scan[2], 2 do names[#names + 1] = scan[2][i] end
  return scan[1], names
end

-- A page of the fields of a hash with large values, without the values. Servers that cannot scan like that (Redis
-- before 7.4) return all fields if they are few, or else some at random.
local function fields(key)
  local scan = redis.pcall('HSCAN', key, A.cursor, 'COUNT', PAGE, 'NOVALUES')
  if not scan.err then return scan[1], scan[2] end
  return '0', redis.call('HRANDFIELD', key, SAMPLE)
end

-- Find groups that `groups` does not list. Keys are compared as plain text, because the name of a queue may contain
-- characters that have a meaning in a pattern of SCAN.
local function unlisted_groups()
  local scan = redis.call('SCAN', A.cursor, 'COUNT', 500)
  local gids = {}
  for _, key in ipairs(scan[2]) do
    if string.sub(key, 1, #K.group) == K.group then
      local gid = string.sub(key, #K.group + 1)
      if redis.call('HEXISTS', K.groups, gid) == 0 then gids[#gids + 1] = gid end
    end
  end
  return { scan[1], #scan[2], {}, gids }
end

--- @writes allow-oom remembers
if A.structure == 'keys' then return unlisted_groups() end
local cursor, groups, names = '0', {}
if A.structure == 'delayed groups' then
  cursor, names = page('ZSCAN', K.delayed)
  groups = repair.with_groups(names)
elseif A.structure == 'delayed counts' then
  names, groups = A.groups, repair.delayed_counts(A.groups, A.counts, A.prints)
elseif A.structure == 'jobs' then
  cursor, names = page('HSCAN', K.jobs)
  repair.jobs(names)
elseif A.structure == 'group' then
  cursor, names = page('ZSCAN', K.group .. A.group)
  local g = group.get(A.group)
  repair.members(g, names)
  if #names > 0 and not g.raw then repair.group(g, repair.running(true)) end
elseif A.structure == 'groups' or A.structure == 'ready' or A.structure == 'parked' then
  cursor, names = page(A.structure == 'groups' and 'HSCAN' or 'ZSCAN', K[A.structure])
  group.load(names)
  local running = repair.running(false)
  for i = 1, #names do repair.group(group.get(names[i]), running) end
elseif A.structure == 'repeats' or A.structure == 'ticks' then
  cursor, names = page(A.structure == 'repeats' and 'HSCAN' or 'ZSCAN', K[A.structure])
  repair.repeats(names)
elseif A.structure == 'stops' then
  cursor, names = page('HSCAN', K.stops)
  repair.stops(names)
elseif A.structure == 'stopping' then
  cursor, names = page('ZSCAN', K.stopping)
  repair.stopping(names)
elseif A.structure == 'blockers' then
  cursor, names = page('HSCAN', K.blockers)
  repair.blockers(names)
elseif A.structure == 'blocking' then
  cursor, names = page('ZSCAN', K.blocking)
  repair.blocking(names)
elseif A.structure == 'blocked' then
  cursor, names = page('ZSCAN', K.blocked)
  repair.blocked(names)
elseif A.structure == 'breakers' or A.structure == 'breaking' or A.structure == 'opened' then
  cursor, names = page(A.structure == 'breakers' and 'HSCAN' or 'ZSCAN', K[A.structure])
  repair.breakers(names)
elseif A.structure == 'unique' or A.structure == 'uniques' then
  cursor, names = page(A.structure == 'unique' and 'HSCAN' or 'ZSCAN', K[A.structure])
  repair.uniques(names)
elseif A.structure == 'bodies' then
  cursor, names = fields(K.bodies)
  repair.bodies(names)
elseif A.structure == 'results' and meta.large then
  cursor, names = fields(K.results)
  repair.index(K.results, names, false)
elseif HASHES[A.structure] then
  cursor, names = page('HSCAN', K[A.structure])
  repair.index(K[A.structure], names, false)
else
  cursor, names = page('ZSCAN', K[A.structure])
  repair.index(K[A.structure], names, true)
end
local reply = { cursor, #names, repair.found(), groups }
if #repair.found() > 0 then return commit(reply) end
return reply
