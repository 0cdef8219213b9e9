--[[
The head of a group while a call changes its members (lib/members.lua): the first of the stored members that were not
dropped and of the members that were put. Members are read and sorted on demand, so that a call that changes many
members of one group does work in proportion to their number.
]]
--- @include "lib/waiting"
local heads = {}
--- @private
local NONE = {}

-- Read the `n` stored members that start first, so that taking them one by one needs no further command.
function heads.look_ahead(g, n)
  if g.stored and (g.known_all or #g.stored >= n) then return end
  g.stored = waiting.first(g, n)
  g.known_all = g.unset or #g.stored < n
  g.pos = 1
end

-- The stored member that starts first and was not dropped by this call. If all members read so far were dropped, twice
-- as many are read: reading one more at a time would be quadratic in the number of dropped members.
local function first_stored(g)
  local removed, pos = g.removed or NONE, g.pos or 1
  if not g.stored then heads.look_ahead(g, #removed + 1) end
  while true do
    local member = g.stored[pos]
    if member and removed[member] then
      pos = pos + 1
    elseif member or g.known_all then
      break
    else
      heads.look_ahead(g, 2 * pos)
    end
  end
  g.pos = pos
  return g.stored[pos] or false
end

-- The members that this call has put, as a set, and sorted with the one that starts first at the end. They are cached,
-- because many may be put and taken again in one call.
function heads.newcomers(g)
  if g.sorted_of ~= #g.added then
    local set, sorted = {}, {}
    for i = 2, #g.added, 2 do
      local member = g.added[i]
      set[member], sorted[#sorted + 1] = true, member
    end
    table.sort(sorted, function(one, other) return waiting.starts_before(other, one) end)
    g.new, g.sorted, g.sorted_of = set, sorted, #g.added
  end
  return g.new, g.sorted
end

-- The member that starts first, with the changes of this call applied.
function heads.find(g)
  local first = first_stored(g)
  if not g.added then return first end
  local _, sorted = heads.newcomers(g)
  local undone = g.undone or NONE
  while undone[sorted[#sorted]] do sorted[#sorted] = nil end
  local best = sorted[#sorted]
  return best and (not first or waiting.starts_before(best, first)) and best or first
end
