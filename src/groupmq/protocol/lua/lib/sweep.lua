--[[
Delete expired entries: start times that rate limits no longer count, ended dedupe entries, ids that are free again, and
old failures of breakers. Only the failures still count until they are deleted. Every reader of the others checks the
time.
]]
--- @include "lib/starts"
--- @include "lib/dedupe"
--- @include "lib/unique"
--- @include "lib/breaker_changes"
local sweep = {}
--- @private
local BATCH = 100

-- Returns whether some kind had as many entries as one call deletes: the caller then calls again at once. Otherwise
-- entries that are added faster than calls delete them would pile up.
function sweep.all()
  local starts_swept, dedupe_swept = starts.sweep(BATCH), dedupe.sweep(BATCH)
  local unique_swept, breakers_swept = unique.sweep(BATCH), breaker_changes.sweep(BATCH)
  return math.max(starts_swept, dedupe_swept, unique_swept, breakers_swept) >= BATCH
end
