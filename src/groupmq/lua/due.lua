--[[
Do what time has made due, and take nothing: what advance does on its way, for schedulers that run alone.

Arguments  promote, unpark, expire (which duties; with `expire` also jobs past their ttl), policy as in advance
Reply      {jobs promoted, groups woken, stalled (id, group, final ...), ms until the next or -1}
]]
--- @include "lib/due"
--- @include "lib/sweep"
--- @include "lib/settle"
--- @include "lib/wake"
local stalled = A.expire and due.expire(A.policy) or {}
if A.expire then due.overdue() end
local promoted = A.promote and due.promote() or 0
local woken = A.unpark and due.unpark() or 0
retention.settle(A.policy.keep)
if A.unpark then sweep.all() end
if settle.groups() then wake.up() end
W.commit()
return { promoted, woken, stalled, horizon.wait() }
