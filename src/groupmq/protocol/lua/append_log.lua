--[[
Append a line to the log of a job, of which the newest MOST_LINES are kept. It counts only under the fence of the job's
current lease.

Arguments
  id          job id
  fence       of the run
  line        text
Reply      1 = stored, 0 = the lease is no longer the caller's
Events     none
Cost       O(MOST_LINES): 3 commands; the whole log of the job is rewritten
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/seen"
--- @include "lib/meta"
--- @include "lib/writes"
--- @include "lib/lease"
local MOST_LINES = 100
--- @writes remembers
local l = lease.load({ A.id })[1]
if not (l and l.fence == A.fence) then return commit(0) end
seen.add(K.logs)
local raw = redis.call('HGET', K.logs, A.id)
local log = raw and cmsgpack.unpack(raw) or {}
log[#log + 1] = { now, A.line }
if #log > MOST_LINES then table.remove(log, 1) end
W.hset(K.logs, A.id, cmsgpack.pack(log))
meta.progress = true
return commit(1)
