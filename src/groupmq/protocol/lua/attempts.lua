--[[
Read the attempts of one job.

Arguments
  id          job id
Reply      {state of the job ('' = no such job), its state record or '', its history (lib/history.lua) or '',
            the current run: {started, attempt, worker}, {} = no run is known}
Events     none
Cost       O(1): at most 6 commands
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/state"
--- @include "lib/lease"
--- @include "lib/find"
--- @reads
local stored = redis.call('HMGET', K.state, A.id, HISTORY .. A.id)
local l = lease.load({ A.id })[1]
local state_now = find.state(A.id, l)
local run = l and not l.prefetched and { l.started, l.attempts + 1, lease.worker(l) } or {}
local raw = stored[1] and state.read(stored[1]) and stored[1] or ''
return { state_now, raw, stored[2] or '', run }
