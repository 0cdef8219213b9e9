--[[
What a handler says while it runs: progress, and lines of a log. Counts only under the token of the current lease.

Arguments  notes, per note {id, token, progress (JSON) or false, line or false}
Reply      per note: 1 stored, 0 the lease is another's
]]
--- @include "lib/lease"
--- @include "lib/events"
local MOST_LINES = 100
local ids, statuses, logs = {}, {}, {}
for i = 1, #A.notes do ids[i] = A.notes[i][1] end
local leases = lease.load(ids)
local stored = #ids > 0 and redis.call('HMGET', K.logs, unpack(ids)) or {}
redis.call('HLEN', K.progress) -- a key of a wrong type must stop the call before it writes

local function append(id, raw, line)
  local log = logs[id] or (raw and cmsgpack.unpack(raw)) or {}
  logs[id] = log
  log[#log + 1] = { now, line }
  if #log > MOST_LINES then table.remove(log, 1) end
end

for i = 1, #A.notes do
  local id, token, value, line = unpack(A.notes[i])
  local l = leases[i]
  statuses[i] = l and l.token == token and 1 or 0
  if statuses[i] == 1 then
    if value then
      W.hset(K.progress, id, value)
      events.note('progress', id, l.gid, value)
    end
    if line then append(id, stored[i], line) end
  end
end
for id, log in pairs(logs) do W.hset(K.logs, id, cmsgpack.pack(log)) end
if not meta.notes then W.hset(K.meta, 'notes', '1') end
W.commit(true)
return statuses
