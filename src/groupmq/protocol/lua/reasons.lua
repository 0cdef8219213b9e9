--[[
Read why jobs failed: a page of the failed jobs that are kept, newest first, without their data and stacks.

Arguments
  limit       how many jobs, at most
  after       {score, id} of the last job seen; absent = start
Reply      {now, failed jobs in all, per job: {id, score, reason, class of the error or '', when it ended}}
           A page has fewer than `limit` jobs where stacks are long; an empty page is the end.
Events     none
Cost       O(limit), and about BYTES of state records: one command for STEP jobs
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/state"
local STEP, BYTES, TEXT = 50, 393216, 400
--- @reads
local rank = 0
if A.after then
  if redis.call('ZSCORE', K.failed, A.after[2]) == A.after[1] then
    rank = redis.call('ZREVRANK', K.failed, A.after[2]) + 1
  else
    rank = redis.call('ZCOUNT', K.failed, '(' .. A.after[1], '+inf')
  end
end
local found = redis.call('ZRANGE', K.failed, rank, rank + A.limit - 1, 'REV', 'WITHSCORES')
local failed, left = {}, BYTES
for from = 1, #found, 2 * STEP do
  local ids, last = {}, math.min(from + 2 * STEP - 1, #found)
  for i = from, last, 2 do ids[#ids + 1] = found[i] end
  local raw = redis.call('HMGET', K.state, unpack(ids))
  for i = 1, #ids do
    local s = raw[i] and state.read(raw[i]) or state.fresh()
    left = left - #(raw[i] or '')
    failed[#failed + 1] = { ids[i], found[from + 2 * i - 1], string.sub(s[REASON], 1, TEXT), s[ERROR] or '', s[FINISHED]
    }
  end
  if left < 0 then break end
end
return { now, redis.call('ZCARD', K.failed), failed }
