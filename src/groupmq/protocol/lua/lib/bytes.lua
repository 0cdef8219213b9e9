--[[
Compare strings by their bytes, as the server orders members of sorted sets. Lua's own `<` and table.sort compare by the
locale that the server was started with. With LANG=en_US.UTF-8, which is usual for services, two of five sort keys
compare the wrong way round.
]]
local bytes = {}
--- @private

function bytes.before(one, other)
  for i = 1, math.min(#one, #other) do
    local a, b = string.byte(one, i), string.byte(other, i)
    if a ~= b then return a < b end
  end
  return #one < #other
end
