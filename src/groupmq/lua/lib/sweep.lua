--[[
What is over and would only take up room: rate limits' memories of old starts, keys of a dedupe that has ended. Nothing
depends on it being gone: whoever reads it looks at the time.
]]
--- @include "lib/rate"
--- @include "lib/dedupe"
local sweep = {}
--- @private
local BATCH = 500

function sweep.all() return rate.sweep(BATCH) + dedupe.sweep(BATCH) end
