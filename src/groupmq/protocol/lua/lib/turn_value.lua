--[[
The turn of an exclusive queue as it is stored in `meta` (lib/turn.lua): {worker, epoch, deadline, jobs taken}.
]]
local turn_value = {}

-- The stored turn, nil if there is none. A damaged value counts as none: otherwise every call of the queue would fail.
-- The next turn replaces it, and does not begin while a job of the lost turn has a lease.
function turn_value.read(raw)
  if not raw then return nil end
  local readable, t = pcall(cmsgpack.unpack, raw)
  if not readable or type(t) ~= 'table' or type(t[1]) ~= 'string' then return nil end
  for i = 2, 4 do
    if type(t[i]) ~= 'number' then return nil end
  end
  return t
end
