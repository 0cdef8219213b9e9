--[[ The next instant at which something becomes due. Replies carry it, and idle workers sleep exactly until then. ]]
local horizon = {}

function horizon.note(time)
  if not horizon.at or time < horizon.at then horizon.at = time end
end

-- Milliseconds from now, -1 when nothing is due ever.
function horizon.wait() return horizon.at and math.max(0, horizon.at - now) or -1 end
