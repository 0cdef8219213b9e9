--[[ The next instant at which something becomes due. Replies carry it, and idle workers sleep exactly until then. ]]
local horizon = {}
--- @private

function horizon.note(time)
  if not horizon.at or time < horizon.at then horizon.at = time end
end

-- A due time that this call makes.
function horizon.add(time)
  if not horizon.new or time < horizon.new then horizon.new = time end
  horizon.note(time)
end

-- What this call made due comes before all that was known: workers that sleep must hear of it.
function horizon.moved() return horizon.new ~= nil and horizon.new == horizon.at end

-- Milliseconds from now, -1 when nothing is due ever.
function horizon.wait() return horizon.at and math.max(0, horizon.at - now) or -1 end
