--[[
Find and repair damage that none of our transitions causes: keys edited by hand, evicted records, a half-restored
backup. Each function checks a page of one structure against the others inside one atomic call, notes the repair like
any other change, and reports the damage that it found. Normally it finds nothing.

This file is what the others of its folder share.
]]
--- @include "lib/call"
--- @include "lib/keys"
--- @include "lib/lease"
--- @include "lib/stopping"
local repair = {}
--- @private
local MOST_LEASES = 5000

-- The damage that this call has found, flat: kind, id ...
function repair.found()
  call.damage = call.damage or {}
  return call.damage
end

function repair.report(kind, id)
  local found = repair.found()
  local n = #found
  found[n + 1], found[n + 2] = kind, id
end

-- Group id -> how many of its slots are taken. nil if there are too many leases to read in one call; with `any` all of
-- them are read nevertheless.
function repair.running(any)
  if not any and redis.call('HLEN', K.leases) > MOST_LEASES then return nil end
  local n = {}
  for _, raw in ipairs(redis.call('HVALS', K.leases)) do
    local gid = lease.group_of(raw)
    if gid then n[gid] = (n[gid] or 0) + 1 end
  end
  for _, gid in ipairs(stopping.groups()) do n[gid] = (n[gid] or 0) + 1 end
  return n
end
