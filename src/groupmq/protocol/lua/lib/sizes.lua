--[[
Record in `meta` that the queue has had a large job. From then on a call that reads many records checks their sizes
first; other queues do not pay for that.
]]
--- @include "lib/meta"
local sizes = {}
--- @private
local LARGE = 32768 -- bytes

function sizes.note(rec)
  if #rec > LARGE then meta.large = true end
end
