--[[
Everything that a call keeps until it ends, in one table that is new for each call. So a call cannot see what an earlier
call has left, however that one ended. No other variable of a file may change while a call runs, except those that the
beginning of each call sets again; tools/lint_lua.py checks that.

The file that needs a field creates it on first use, so that a small call does not pay for features it does not use.
]]
local call

