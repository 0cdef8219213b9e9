--[[
Add N jobs. A job whose id exists already, or is still taken (lib/unique.lua), adds nothing: the data of the first add
is kept, so sending a call twice is harmless.

Arguments  columns with one value per job; a column after `sizes` is absent if all jobs have the default
  ids         job ids
  groups      group ids, '' = no group
  sizes       bytes of the job's body in the blob, or in `preamble`
  priorities  default 0
  delays      ms, default 0 = none
  times       when the job may start, epoch ms, default 0 = now
  ordered     true = 8 bytes of order precede the body in the blob; default false
  extras      {ttl (ms or false), dedupe (lib/dedupe.lua) or false, how long the id stays taken after the job has
              ended (ms; lib/unique.lua) or false}; default false
  repeats     true if an id occurs more than once in this call
  whole       true = if a group is full, the call writes nothing
  preamble    of a large job, which is alone in its call: the bytes that would precede its data in the blob
Blob       for each job its order, if it brings one, and its body (the part of lib/record.lua after `created`); with
           `preamble` only the data: it is the one large string of the call (lib/bodies.lua)
Reply      {now, the order given to jobs that brought none, indexes (from 1) of the duplicates,
            jobs that another one stands for (dedupe, or a job that has ended and whose id is still taken), flat: index,
            id of that job, when that job was made,
            indexes of the jobs whose group is full}
Events     added; active, if a single job is granted to an idle worker (lib/offer.lua)
Cost       O(N): 2 commands per group and about 10 per call
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/meta"
--- @include "lib/group"
--- @include "lib/seen"
--- @include "transitions/enter"
--- @include "transitions/grant"
--- @include "lib/dedupe"
--- @include "lib/unique"
local NONE = {}

-- Record that job `id`, which was made at `made`, stands for the i-th job.
local function stand_in(deduped, i, id, made)
  local n = #deduped
  deduped[n + 1], deduped[n + 2], deduped[n + 3] = i, id, made
end

-- Returns true if the job of an earlier add stands for the i-th job, and appends that to `deduped`. A job that still
-- waits for its debounce is replaced by the i-th job.
local function stands_in(deduped, i, gid, d, priority, due, order, ttl, body, data)
  local id, created, made = dedupe.find(gid, d)
  if not id then return false end
  if created then
    replace_delayed_job(id, created, priority, due, order, ttl, body, data)
    dedupe.enter(gid, d, id, created)
  end
  stand_in(deduped, i, id, made)
  return true
end

--- @writes remembers
local ids, lengths, at, duplicates, full = A.ids, A.sizes, 1, {}, {}
local priorities, delays, times = A.priorities or NONE, A.delays or NONE, A.times or NONE
local ordered, extras, already = A.ordered or NONE, A.extras or NONE, A.repeats and {}
local gids, deduped = A.groups, {}
local source, data = A.preamble or blob, A.preamble and blob
seen.add(K.jobs)
local existing = redis.call('HMGET', K.jobs, unpack(ids))
local taken = unique.load(ids)
group.load(gids)
for i = 1, #ids do
  local id, priority, delay, due, order = ids[i], priorities[i] or 0, delays[i], times[i] or 0, false
  if ordered[i] then
    order = string.sub(source, at, at + 7)
    at = at + 8
  end
  local body = lengths[i] == #source and source or string.sub(source, at, at + lengths[i] - 1)
  at = at + lengths[i]
  if delay and delay > 0 then due = now + delay end
  local extra = extras[i] or NONE
  local ttl, d, stays = extra[1], extra[2], extra[3]
  local is_new = not (existing[i] or (already and already[id]))
  local made = is_new and taken[i] and unique.made(id, taken[i])
  if not is_new then
    duplicates[#duplicates + 1] = i
  elseif made then
    stand_in(deduped, i, id, made)
  elseif not (d and stands_in(deduped, i, gids[i], d, priority, due, order, ttl, body, data)) then
    local g = group.get(gids[i])
    if group_has_room(g) then
      if already then already[id] = true end
      local rec, member = enter_job(g, id, priority, due, order, ttl, body, data)
      if member and not (ids[2] or ttl or data) then grant_offered(g, id, rec, member) end
      if d then dedupe.enter(gids[i], d, id, now) end
      if stays then unique.enter(id, stays) end
    else
      full[#full + 1] = i
    end
  end
end
local order = meta.next_order()
if A.whole and #full > 0 then return { now, order, {}, {}, full } end
return commit({ now, order, duplicates, deduped, full })
