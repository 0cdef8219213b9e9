--[[
Store the progress that a handler reports while it runs; the last one is kept. It counts only under the fence of the
job's current lease.

Arguments
  id          job id
  fence       of the run
  progress    JSON
Reply      1 = stored, 0 = the lease is no longer the caller's
Events     progress
Cost       O(1): 2 commands
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/meta"
--- @include "lib/writes"
--- @include "lib/lease"
--- @include "lib/events"
--- @writes remembers
local l = lease.load({ A.id })[1]
if not (l and l.fence == A.fence) then return commit(0) end
W.hset(K.progress, A.id, A.progress)
events.publish('progress', A.id, l.gid, A.progress)
meta.progress = true
return commit(1)
