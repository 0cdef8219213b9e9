--[[
Change the settings that operators control: pause or resume the queue or one group, or set the concurrency and the rate
limit of one group.

Arguments
  group        group id; absent = the whole queue
  paused       true or false; absent = unchanged
  concurrency  how many jobs of the group run at once, 0 = the queue's setting; absent = unchanged
  rate         {n, per}, {} = the queue's setting; absent = unchanged
Reply      1 if anything changed, else 0
Events     paused, resumed
Cost       O(1): some 15 commands
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/whole"
--- @include "lib/seen"
--- @include "lib/meta"
--- @include "lib/writes"
--- @include "lib/group"
--- @include "lib/events"
--- @include "lib/wake"
--- @writes allow-oom remembers
if not A.group then
  local was = meta.paused
  meta.paused = A.paused
  if not A.paused then wake.up() end
  if was ~= A.paused then events.publish(A.paused and 'paused' or 'resumed', '', '') end
  return commit(was ~= A.paused and 1 or 0)
end
seen.add(K.conf)
local raw = redis.call('HGET', K.conf, A.group)
local conf = raw and cmsgpack.unpack(raw) or {}
local others = redis.call('HLEN', K.conf) - (raw and 1 or 0)
local before = { conf.paused or false, conf.limit, conf.rate }
if A.paused ~= nil and A.paused ~= (conf.paused or false) then
  conf.paused = A.paused or nil
  events.publish(A.paused and 'paused' or 'resumed', '', A.group)
end
if A.concurrency then conf.limit = A.concurrency > 0 and A.concurrency or nil end
if A.rate then conf.rate = A.rate[1] and A.rate or nil end
local any = next(conf) ~= nil
if any then W.hset(K.conf, A.group, cmsgpack.pack(conf)) else W.hdel(K.conf, A.group) end
local g = group.get(A.group)
g.paused, g.at = conf.paused, 'unknown'
g.concurrency = conf.limit or meta.concurrency
g.rate = conf.rate or rules.group_rate
if g.rate then
  g.gated = true
  -- With a longer span, the stored start times must be kept longer.
  if redis.call('EXISTS', K.rate .. A.group) == 1 then W.zadd(K.rated, whole(now + g.rate[2]), A.group) end
end
meta.overrides = any or others > 0
group.touch(g)
local was, is = before[3] or {}, conf.rate or {}
local changed = before[1] ~= (conf.paused or false) or before[2] ~= conf.limit or was[1] ~= is[1] or was[2] ~= is[2]
return commit(changed and 1 or 0)
