--[[
How many jobs one call may handle in total, so that no call blocks the server for more than a few milliseconds: a call
that reports many outcomes does less of the work that is due, and a call that finds much of it takes fewer jobs. A step
that leaves work behind asks the caller to call again at once (lib/horizon.lua).
]]
--- @include "lib/call"
local budget = {}
--- @private
local MOST, LEAST = 60, 12 -- LEAST: for each step, so that none starves

function budget.left() return call.budget or MOST end

function budget.spend(n) call.budget = budget.left() - n end

-- How many jobs the next step may handle, at most `most`.
function budget.share(most) return math.min(most, math.max(LEAST, budget.left())) end
