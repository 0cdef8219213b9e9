--[[
The operator's switches: pause and resume the queue or one group, and set one group's limits.

Arguments  paused (true / false, absent = leave), group (absent = the whole queue), limit (0 = the queue's own),
           rate ({n, per}, {} = the queue's own)
Reply      1 if anything changed
]]
--- @include "lib/settle"
--- @include "lib/wake"
--- @include "lib/events"
if not A.group then
  W.hset(K.meta, 'paused', A.paused and '1' or '0')
  if not A.paused then wake.up() end
  if meta.paused ~= A.paused then events.note(A.paused and 'paused' or 'resumed', '', '') end
  W.commit()
  return meta.paused ~= A.paused and 1 or 0
end
local raw = redis.call('HGET', K.conf, A.group)
local conf = raw and cmsgpack.unpack(raw) or {}
local others = redis.call('HLEN', K.conf) - (raw and 1 or 0)
local before = { conf.paused or false, conf.limit, conf.rate }
if A.paused ~= nil and A.paused ~= (conf.paused or false) then
  conf.paused = A.paused or nil
  events.note(A.paused and 'paused' or 'resumed', '', A.group)
end
if A.limit then conf.limit = A.limit > 0 and A.limit or nil end
if A.rate then conf.rate = A.rate[1] and A.rate or nil end
local any = next(conf) ~= nil
if any then W.hset(K.conf, A.group, cmsgpack.pack(conf)) else W.hdel(K.conf, A.group) end
W.hset(K.meta, 'overrides', (any or others > 0) and '1' or '0')

local g = group.get(A.group)
g.paused, g.at = conf.paused, 'unknown'
g.limit = conf.limit or meta.limit
g.rate = conf.rate or rules.group_rate
if g.rate then
  g.gated = true
  -- A longer window needs the starts it knows of for longer.
  if redis.call('EXISTS', K.rate .. A.group) == 1 then W.zadd(K.rated, W.whole(now + g.rate[2]), A.group) end
end
group.touch(g)
if settle.groups() then wake.up() end
W.commit()
local was, is = before[3] or {}, conf.rate or {}
local changed = before[1] ~= (conf.paused or false) or before[2] ~= conf.limit or was[1] ~= is[1] or was[2] ~= is[2]
return changed and 1 or 0
