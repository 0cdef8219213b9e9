--[[
Delete what has expired and only takes up memory: start times of old rate limits, and ended dedupe entries. Nothing
depends on the deletion, because every reader checks the time.
]]
--- @include "lib/starts"
--- @include "lib/dedupe"
local sweep = {}
--- @private
local BATCH = 100

function sweep.all() return starts.sweep(BATCH) + dedupe.sweep(BATCH) end
