--[[ A whole number as exact text. tostring would use scientific notation for large numbers. ]]
local function whole(number) return string.format('%d', number) end
