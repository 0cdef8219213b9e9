--[[
The queue's own settings and its three sequences:

  seq    arrivals, 1, 2, 3 ...: the last tie-break of the order and the fairness key across groups
  stamp  grows by at least one microsecond each time and follows the clock: fencing tokens and finishing times.
         Taken from max(last + 1, TIME), so a failover that rolls `stamp` back can not hand out a token twice
  order  the default order of jobs that bring none: the server's time, but never smaller than the last one given,
         so a clock that steps back does not reorder arrivals

`rules` are the shared settings the scripts act on, absent while they are the defaults:

  event_window             ms; a job waits until its order + this
  arrival_window, max_wait ms; a group waits for late arrivals
  round_robin              groups take turns, instead of the oldest head first
  rate, group_rate         {n, per (ms)}: at most n starts in any window of that length
  exclusive                one worker at a time
  max_group                live jobs a group may have
  ageing                   ms of waiting that count as one level of priority
  silent                   no events are written
]]
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/writes"
local meta = {}
local rules
--- @private
local stored_sequences
do
  local stored = redis.call(
    'HMGET', K.meta, 'schema', 'seq', 'stamp', 'order', 'paused', 'limit', 'overrides', 'rules', 'repeat_at', 'ttls',
    'throttled', 'notes', 'logged', 'log_bytes'
  )
  if stored[1] ~= SCHEMA then
    return redis.error_reply('GROUPMQ_SCHEMA ' .. (stored[1] or 'none') .. ' stored, this script needs ' .. SCHEMA)
  end
  meta.seq = tonumber(stored[2]) or 0
  meta.stamp = tonumber(stored[3]) or 0
  meta.order = tonumber(stored[4]) or 0
  stored_sequences = { seq = meta.seq, stamp = meta.stamp, order = meta.order }
  meta.paused = stored[5] == '1'
  meta.limit = tonumber(stored[6]) or 1
  meta.overrides = stored[7] == '1'
  rules = stored[8] and cmsgpack.unpack(stored[8]) or {}
  meta.repeat_at = tonumber(stored[9])
  meta.ttls = stored[10] == '1'
  meta.throttled = tonumber(stored[11]) or 0
  meta.notes = stored[12] == '1'
  meta.logged = tonumber(stored[13]) or 0
  meta.log_bytes = tonumber(stored[14]) or 0
end

function meta.next_seq()
  meta.seq = meta.seq + 1
  return meta.seq
end

-- The first of `n` that follow each other.
function meta.next_stamps(n)
  local first = meta.stamp < now_us and now_us or meta.stamp + 1
  meta.stamp = first + n - 1
  return first
end

function meta.next_order()
  if now > meta.order then meta.order = now end
  return meta.order
end

-- Written once a call, however many were drawn.
W.before_commit[1] = function()
  for _, name in ipairs({ 'seq', 'stamp', 'order' }) do
    if meta[name] ~= stored_sequences[name] then W.hset(K.meta, name, W.whole(meta[name])) end
  end
end
