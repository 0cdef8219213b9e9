--[[
The whole view of N jobs.

Arguments  ids
Reply      per id: false, or {state, record, state record or '', result or false, score (due time in ms if delayed,
           stamp if finished, else 0), token or 0, started, worker, hold (ms, 0 = none), progress (JSON or false),
           log (packed or false), when its ttl ends (ms, 0 = never)}
]]
--- @include "lib/find"
local found = find.jobs(A.ids)
local reply = {}
local _, raw_states = state.load(A.ids)
local progress, logs = {}, {}
if meta.notes and #A.ids > 0 then
  progress, logs = redis.call('HMGET', K.progress, unpack(A.ids)), redis.call('HMGET', K.logs, unpack(A.ids))
end
local function expires(job)
  if not meta.ttls or not record.has_ttl(job.rec) then return 0 end
  return tonumber(redis.call('ZSCORE', K.expiring, job.id)) or 0
end

local results = #A.ids > 0 and redis.call('HMGET', K.results, unpack(A.ids)) or {}
for i = 1, #found do
  local job = found[i]
  if job.state then
    local l = job.lease or { token = 0, started = 0 }
    local holds = job.state == 'waiting' and find.group(job).holds
    reply[i] = {
      job.state, job.rec, raw_states[i] or '', results[i], job.score or 0, l.token, l.started,
      job.lease and lease.worker(l) or '', holds and holds[job.id] or 0, progress[i] or false, logs[i] or false,
      expires(job),
    }
  else
    reply[i] = false
  end
end
return reply
