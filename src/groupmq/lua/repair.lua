--[[
Check and mend one page of one structure. The client goes through all of them.

Arguments  structure ('jobs', 'groups', 'group', or an index: 'state', 'results', 'leases', 'active', 'delayed',
           'completed', 'failed', 'expiring', 'ready', 'parked', 'repeats', 'ticks', or 'keys': look for groups nobody
           lists),
           cursor ('0' = start), group (its id, for 'group')
Reply      {next cursor ('0' = end), how many entries were looked at, damage (kind, id ...), groups found in 'keys'}
Cost       about 100 entries a call; 'groups' also counts all leases and up to 20,000 delayed jobs
]]
--- @include "lib/mend"
--- @include "lib/settle"
--- @include "lib/wake"
local HASHES = { state = true, results = true, leases = true, progress = true, logs = true, cancels = true }
local PAGE = 100

local function page(command, key)
  local scan = redis.call(command, key, A.cursor, 'COUNT', PAGE)
  local names = {}
  for i = 1, #scan[2], 2 do names[#names + 1] = scan[2][i] end
  return scan[1], names
end

-- Compared as plain text: a queue's name may hold characters that mean something in a pattern.
local function unlisted_groups()
  local scan = redis.call('SCAN', A.cursor, 'COUNT', 1000)
  local gids = {}
  for _, key in ipairs(scan[2]) do
    if string.sub(key, 1, #K.group) == K.group then
      local gid = string.sub(key, #K.group + 1)
      if redis.call('HEXISTS', K.groups, gid) == 0 then gids[#gids + 1] = gid end
    end
  end
  return { scan[1], #scan[2], {}, gids }
end

if A.structure == 'keys' then return unlisted_groups() end
local cursor, names
if A.structure == 'jobs' then
  cursor, names = page('HSCAN', K.jobs)
  mend.jobs(names)
elseif A.structure == 'group' then
  cursor, names = page('ZSCAN', K.group .. A.group)
  local g = group.get(A.group)
  mend.members(g, names)
  if #names > 0 and not g.raw then mend.group(g, mend.census()) end
elseif A.structure == 'groups' or A.structure == 'ready' or A.structure == 'parked' then
  cursor, names = page(A.structure == 'groups' and 'HSCAN' or 'ZSCAN', K[A.structure])
  group.load(names)
  local running, delayed = mend.census()
  for i = 1, #names do mend.group(group.get(names[i]), running, delayed) end
elseif A.structure == 'repeats' or A.structure == 'ticks' then
  cursor, names = page(A.structure == 'repeats' and 'HSCAN' or 'ZSCAN', K[A.structure])
  mend.repeats(names)
elseif HASHES[A.structure] then
  cursor, names = page('HSCAN', K[A.structure])
  mend.index(K[A.structure], names, false)
else
  cursor, names = page('ZSCAN', K[A.structure])
  mend.index(K[A.structure], names, true)
end
if #mend.found > 0 then
  if settle.groups() then wake.up() end
  W.commit()
end
return { cursor, #names, mend.found, {} }
