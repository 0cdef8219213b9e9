--[[
The keys that this call has read with a command of their type. They need no check before they are written
(lib/sending.lua). If a file does not record a key that it has read, the call sends one more command, and nothing
breaks.
]]
--- @include "lib/call"
local seen = {}
--- @private

function seen.add(key) call.seen[key] = true end
