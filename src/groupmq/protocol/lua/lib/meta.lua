--[[
The settings of the queue and its numbers (lib/numbers.lua), which lib/meta_changes.lua writes. Three of the numbers are
sequences:

  seq    arrivals, 1, 2, 3 ...: the last tie-break of the order and the fairness key across groups
  stamp  grows by at least one microsecond each time and follows the clock: fences and finishing times.
         Taken from max(last + 1, TIME), so a failover that rolls `stamp` back cannot grant a fence twice
  order  the order of jobs that bring none: the server's time, but never smaller than the last one given,
         so a clock that steps back does not reorder arrivals

`rules` are the shared settings that the functions act on, each absent while it is the default:

  event_window             ms; a job waits until its order + this
  arrival_window, max_wait ms; a group waits for late arrivals
  round_robin              ready groups are ordered by ticket (lib/line.lua) instead of oldest head first
  rate, group_rate         {n, per (ms)}: at most n starts in any span of that length
  exclusive                one worker at a time
  max_group                live jobs a group may have
  ageing                   ms of waiting that count as one level of priority
  silent                   no events are written
  breaker                  {failures, cooldown (ms)}: lib/breaker_changes.lua
  hold                     a job that failed for good blocks its group, unless the job's own option differs
]]
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/numbers"
--- @include "lib/turn_value"
local meta = {}
local rules
--- @private
local NONE = {}

-- Returns an error reply, which ends the call, if the queue does not exist or has another format, or if its settings
-- are not those that the caller knows. `known`: their revision, '' or absent = the caller knows none.
function meta.begin(known)
  local stored =
    redis.call('HMGET', K.meta, 'schema', 'numbers', 'rules', 'idle', 'turn', 'measures', 'revision', 'offer')
  local schema, raw = stored[1], stored[2]
  if schema ~= SCHEMA or not numbers.is_ours(raw) then
    return redis.error_reply('GROUPMQ_SCHEMA ' .. (schema or 'none') .. ' stored, this script needs ' .. SCHEMA)
  end
  if known and known ~= '' and known ~= stored[7] then
    return redis.error_reply('GROUPMQ_SETTINGS have changed: ' .. (stored[7] or 'none'))
  end
  meta.stored = raw
  numbers.read(meta, raw)
  rules = stored[3] and cmsgpack.unpack(stored[3]) or NONE
  meta.idle = stored[4]
  meta.turn = turn_value.read(stored[5])
  meta.measures = stored[6]
  meta.offer = stored[8] or ''
  meta.stored_offer = meta.offer
end

function meta.next_seq()
  meta.seq = meta.seq + 1
  return meta.seq
end

-- Draw `n` consecutive stamps and return the first.
function meta.next_stamps(n)
  local first = meta.stamp < now_us and now_us or meta.stamp + 1
  meta.stamp = first + n - 1
  return first
end

function meta.next_order()
  if now > meta.order then meta.order = now end
  return meta.order
end
