--[[
The keys that this call has read with a command of their type. They need no check before they are written
(lib/sending.lua). A file that does not record what it has read costs one command more and nothing else.
]]
--- @include "lib/call"
local seen = {}
--- @private

function seen.add(key) call.seen[key] = true end
function seen.has(key) return call.seen[key] end
