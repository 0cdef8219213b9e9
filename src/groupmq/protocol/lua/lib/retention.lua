--[[
Finished jobs are kept up to a number, the newest ones. The call that exceeds it deletes the excess, so the bound holds
at all times. `keep` maps 'completed' and 'failed' to that number, -1 = no bound. Beyond one for each job that has just
finished, one call deletes at most TRIM old jobs, so a bound that was lowered far is reached in steps. A bound of 0 does
not apply to stored jobs: this call forgets the jobs that it ends, and leaves those that other processes keep.

A job that blocks its group (lib/blocking.lua) is never deleted here and does not count: it stays until a person has
resolved it. So that calls need not read the same blocking jobs again and again, `spared` in `meta` is a stamp up to
which all failed jobs block their groups. A call reads at most LOOK of them to find one that does not.
]]
--- @include "lib/call"
--- @include "lib/keys"
--- @include "lib/whole"
--- @include "lib/seen"
--- @include "lib/meta"
--- @include "lib/writes"
--- @include "lib/body_changes"
--- @include "lib/state_changes"
--- @include "lib/blocking_changes"
--- @include "lib/unique"
local retention = {}
--- @private
local TRIM, LOOK = 60, 500
local TRIM_LARGE = 8 -- in a queue with large jobs: a server needs time to free their memory
local NONE = {}

-- Delete everything that is stored for the job. Its id can be used again, unless it stays taken (lib/unique.lua).
function retention.forget(id)
  W.hdel(K.jobs, id)
  body_changes.drop(id)
  if meta.progress then
    W.hdel(K.progress, id)
    W.hdel(K.logs, id)
  end
  state_changes.forget(id)
end

-- The same for a job whose record was deleted from outside.
function retention.lose(id)
  retention.forget(id)
  if meta.uniques then unique.free(id) end
end

-- The same for many jobs without state and result. The caller must not change the list afterwards.
function retention.forget_all(ids)
  W.hdel_all(K.jobs, ids)
  body_changes.drop_all(ids)
  if meta.progress then
    W.hdel_all(K.progress, ids)
    W.hdel_all(K.logs, ids)
  end
  if meta.loose then
    for i = 1, #ids do state_changes.forget_history(ids[i]) end
  end
end

-- Record that this call has ended a job. `call.completed`, `call.failed`: all such jobs.
function retention.finished(kind, id)
  local list = call[kind] or {}
  call[kind] = list
  list[#list + 1] = id
end

-- Record that a failed job no longer blocks its group and stays failed. `stamp`: its score in `failed`.
function retention.released(id, stamp)
  call.released = call.released or {}
  call.released[#call.released + 1] = id
  meta.spared = math.min(meta.spared, stamp - 1)
end

-- The failed jobs of this page that block no group, at most `n` of them; `page`: id, score ...
local function not_blocking(page, n)
  local ids, found, leading = {}, {}, true
  for i = 1, #page, 2 do ids[#ids + 1] = page[i] end
  local blocks = blocking_changes.are(ids)
  for i = 1, #ids do
    if not blocks[i] then
      if #found == n then break end
      found[#found + 1], leading = ids[i], false
    elseif leading then
      meta.spared = tonumber(page[2 * i])
    end
  end
  return found
end

-- The ids of the oldest kept jobs, at most `n`, finished up to the stamp `latest`; none that blocks its group.
function retention.oldest(kind, n, latest)
  seen.add(K[kind])
  local page = { K[kind], '-inf', latest, 'BYSCORE', 'LIMIT', 0, n }
  if kind == 'completed' or not meta.blocks then return redis.call('ZRANGE', unpack(page)) end
  page[2], page[7], page[8] = '(' .. whole(meta.spared), n + LOOK, 'WITHSCORES'
  return not_blocking(redis.call('ZRANGE', unpack(page)), n)
end

-- Delete kept jobs.
function retention.drop(kind, ids)
  if kind == 'failed' and meta.uniques and ids[1] then unique.dropped(ids) end
  for i = 1, #ids do
    W.zrem(K[kind], ids[i])
    retention.forget(ids[i])
  end
end

-- The jobs that this call has ended and that may be forgotten.
local function forgettable(new)
  if not call.blocking then return new end
  local found = {}
  for i = 1, #new do
    if not blocking_changes.is_new(new[i]) then found[#found + 1] = new[i] end
  end
  return found
end

local function apply_to(kind, keep)
  local new, skip, skipped = call[kind] or NONE, 0, {}
  local mine = kind == 'failed' and forgettable(new) or new
  if keep == 0 then
    skip = #mine
    if kind == 'failed' and call.released then retention.drop(kind, call.released) end
  elseif keep > 0 then
    local stored, dropped = redis.call('ZCARD', K[kind]), 0
    if kind == 'failed' then stored = stored - blocking_changes.total() + #new - #mine end
    local excess = stored + #mine - keep
    seen.add(K[kind])
    if excess > 0 and stored > 0 then
      local most = #mine + #(call.released or NONE) + (meta.large and TRIM_LARGE or TRIM)
      local old = retention.oldest(kind, math.min(excess, most), '+inf')
      retention.drop(kind, old)
      dropped = #old
    end
    skip = math.min(#mine, math.max(0, excess - stored))
    if kind == 'failed' then call.dropped = dropped + skip end
  end
  for i = 1, skip do
    retention.forget(mine[i])
    skipped[mine[i]] = true
  end
  for i = 1, #new do
    if not skipped[new[i]] then W.zadd(K[kind], whole(meta.next_stamps(1)), new[i]) end
  end
end

-- Apply the bounds to the jobs that this call has ended or released, and delete the excess.
function retention.apply(keep)
  if call.completed then apply_to('completed', keep.completed) end
  if call.failed or call.released then apply_to('failed', keep.failed) end
end
