--[[
The one clock: the server's TIME, in milliseconds, read once per call so that a script sees a single instant.
Tests pass `now` and walk hours in microseconds.
]]
--- @include "lib/args"
local now, now_us = A.now
if now then
  now_us = now * 1000
else
  local t = redis.call('TIME')
  now_us = t[1] * 1000000 + t[2]
  now = math.floor(now_us / 1000)
end
