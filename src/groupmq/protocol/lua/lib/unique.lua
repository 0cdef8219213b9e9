--[[
Ids that stay taken after their job has ended (`unique_for`), even if the job is not kept: an add with such an id adds
nothing. Removing a job frees its id at once, because a person asked for it; retention and `clean` do not.

  unique   hash  job id -> how long it stays taken (6 bytes, ms), when that ends (6 bytes, ms; 0 = its job has not
                 ended), when the job was made (6 bytes, ms)
  uniques  zset  ids whose job has ended, by the time at which they are free

A failed job that is kept may run again, and its id is then taken for the same time again. So its value in `unique` is
kept as long as the job, even after that time, without an entry in `uniques`.

`uniques` in `meta` is 1 once a job has brought such an id.
]]
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/whole"
--- @include "lib/meta"
--- @include "lib/writes"
local unique = {}
--- @private
local LAYOUT = '>I6I6I6'

-- How long the id stays taken, until when, and when its job was made; nil if the value is not ours.
function unique.read(raw)
  if raw and #raw == 18 then return struct.unpack(LAYOUT, raw) end
end

-- Store the id of a new job: it stays taken for `ms` after the job has ended.
function unique.enter(id, ms)
  W.hset(K.unique, id, struct.pack(LAYOUT, ms, 0, now))
  meta.uniques = true
end

-- The stored values of `ids`, by index; {} if there can be none.
function unique.load(ids) return meta.uniques and redis.call('HMGET', K.unique, unpack(ids)) or {} end

-- When the job of an id that is still taken was made; nil if the id is free. A value whose time is over is deleted,
-- because the id may be used again.
function unique.made(id, raw)
  local _, ends, made = unique.read(raw)
  if ends and ends > now then return made end
  if raw then unique.free(id) end
end

-- Free the id: it can be used again at once.
function unique.free(id)
  W.hdel(K.unique, id)
  W.zrem(K.uniques, id)
end

-- Set the end of the ids of jobs that have ended: each stays taken for its time from now on.
function unique.ended(ids)
  local stored = redis.call('HMGET', K.unique, unpack(ids))
  for i = 1, #ids do
    local ms, _, made = unique.read(stored[i])
    if ms then
      W.hset(K.unique, ids[i], struct.pack(LAYOUT, ms, now + ms, made))
      W.zadd(K.uniques, whole(now + ms), ids[i])
    end
  end
end

-- Clear the end of the id of a failed job that runs again: the id is taken until the job has ended once more.
function unique.lives(id)
  local ms, _, made = unique.read(redis.call('HGET', K.unique, id))
  if not ms then return end
  W.hset(K.unique, id, struct.pack(LAYOUT, ms, 0, made))
  W.zrem(K.uniques, id)
end

function unique.sweep(limit)
  if not meta.uniques then return 0 end
  local old = redis.call('ZRANGE', K.uniques, '-inf', whole(now), 'BYSCORE', 'LIMIT', 0, limit)
  local failed = old[1] and redis.call('ZMSCORE', K.failed, unpack(old))
  for i = 1, #old do
    if failed[i] then W.zrem(K.uniques, old[i]) else unique.free(old[i]) end
  end
  return #old
end

-- Free the ids of failed jobs that are no longer kept. Ids whose time is not over yet stay taken.
function unique.dropped(ids)
  local stored = redis.call('HMGET', K.unique, unpack(ids))
  for i = 1, #ids do
    local _, ends = unique.read(stored[i])
    if ends and ends <= now then unique.free(ids[i]) end
  end
end
