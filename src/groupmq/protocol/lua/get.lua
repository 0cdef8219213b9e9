--[[
Read everything that is stored for N jobs.

Arguments
  ids         job ids
Reply      for as many jobs as fit in one reply, at least the first (lib/room.lua), per id: false, or {state, record,
           state record or '', result or false, score (due time in ms if delayed, stamp if finished, else 0),
           fence or 0, started, worker, end of its hold (ms, 0 = none), progress (JSON or false), log (packed or false),
           when its ttl ends (ms, 0 = never), since when it blocks its group (ms, 0 = it does not),
           if the record does not have it: the data}
Events     none
Cost       O(N): two or three commands per job and ten per call, and about a megabyte of records, data and results
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/meta"
--- @include "lib/record"
--- @include "lib/state"
--- @include "lib/lease"
--- @include "lib/find"
--- @include "lib/room"
--- @include "lib/bodies"
--- @include "lib/blocking"
local function expires(job)
  if not meta.ttls or not record.has_ttl(job.rec) then return 0 end
  return tonumber(redis.call('ZSCORE', K.expiring, job.id)) or 0
end

--- @reads
local ids = room.first(A.ids)
local found = find.jobs(ids)
local reply = {}
local _, raw_states = state.load(ids)
local progress, logs = {}, {}
if meta.progress and #ids > 0 then
  progress, logs = redis.call('HMGET', K.progress, unpack(ids)), redis.call('HMGET', K.logs, unpack(ids))
end
local blockers = meta.blocks and #ids > 0 and redis.call('HMGET', K.blockers, unpack(ids)) or {}
local results = #ids > 0 and redis.call('HMGET', K.results, unpack(ids)) or {}
for i = 1, #found do
  local job = found[i]
  if job.state then
    local l = job.lease or { fence = 0, started = 0 }
    local holds = job.state == 'waiting' and find.group(job).holds
    reply[i] = {
      job.state, job.rec, raw_states[i] or '', results[i], job.score or 0, l.fence, l.started,
      job.lease and lease.worker(l) or '', holds and holds[job.id] or 0, progress[i] or false, logs[i] or false,
      expires(job), blockers[i] and select(2, blocking.unpack(blockers[i])) or 0,
      bodies.read(job.id, job.rec) or nil,
    }
  else
    reply[i] = false
  end
end
return reply
