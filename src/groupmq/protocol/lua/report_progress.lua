--[[
Store the progress that handlers report while they run, and the lines that they append to their logs. An entry counts
only under the fence of the job's current lease.

Arguments
  entries     {id, fence, progress (JSON) or false, log line or false} ...
Reply      per entry: 1 = stored, 0 = the lease is no longer the caller's
Events     progress
Cost       O(entries) fields in some ten commands; the whole log of a job, at most MOST_LINES lines, is rewritten
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/seen"
--- @include "lib/meta"
--- @include "lib/writes"
--- @include "lib/lease"
--- @include "lib/events"
local MOST_LINES = 100

-- `logs`: job id -> its log with the lines that this call appends.
local function append(logs, id, raw, line)
  local log = logs[id] or (raw and cmsgpack.unpack(raw)) or {}
  logs[id] = log
  log[#log + 1] = { now, line }
  if #log > MOST_LINES then table.remove(log, 1) end
end

--- @writes remembers
local logs, ids, statuses = {}, {}, {}
for i = 1, #A.entries do ids[i] = A.entries[i][1] end
local leases = lease.load(ids)
seen.add(K.logs)
local stored = #ids > 0 and redis.call('HMGET', K.logs, unpack(ids)) or {}
for i = 1, #A.entries do
  local id, fence, value, line = unpack(A.entries[i])
  local l = leases[i]
  statuses[i] = l and l.fence == fence and 1 or 0
  if statuses[i] == 1 then
    if value then
      W.hset(K.progress, id, value)
      events.publish('progress', id, l.gid, value)
    end
    if line then append(logs, id, stored[i], line) end
  end
end
for id, log in pairs(logs) do W.hset(K.logs, id, cmsgpack.pack(log)) end
meta.progress = true
return commit(statuses)
