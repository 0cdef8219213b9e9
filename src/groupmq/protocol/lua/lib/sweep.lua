--[[
Delete what has expired: start times of old rate limits, ended dedupe entries, ids that are free again, and failures that
breakers no longer count. Only the last of them is in effect until it is deleted; every reader of the others checks the
time.
]]
--- @include "lib/starts"
--- @include "lib/dedupe"
--- @include "lib/unique"
--- @include "lib/breaker_changes"
local sweep = {}
--- @private
local BATCH = 100

function sweep.all()
  return starts.sweep(BATCH) + dedupe.sweep(BATCH) + unique.sweep(BATCH) + breaker_changes.sweep(BATCH)
end
