--[[
The one clock: the server's TIME in milliseconds, read once per call so that a call sees a single instant.
Tests pass `now` as an argument, so that they can go through hours without waiting.
]]
--- @include "lib/args"
local clock = {}
local now, now_us
--- @private

function clock.begin()
  now = A.now
  if now then
    now_us = now * 1000
  else
    local t = redis.call('TIME')
    now_us = t[1] * 1000000 + t[2]
    now = math.floor(now_us / 1000)
  end
end
