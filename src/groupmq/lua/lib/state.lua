--[[
What changes about a job, one msgpack array in `state`, absent while the job never ran:
attempts (runs that ended), stalls, started, finished, worker, reason, stack.
Text only, never opaque bytes: the client decodes it as text.
]]
--- @include "lib/keys"
--- @include "lib/writes"
local state = {}
local ATTEMPTS, STALLS, STARTED, FINISHED, WORKER, REASON, STACK = 1, 2, 3, 4, 5, 6, 7

function state.load(ids)
  local raw = #ids > 0 and redis.call('HMGET', K.state, unpack(ids)) or {}
  local all = {}
  for i = 1, #ids do
    all[i] = raw[i] and cmsgpack.unpack(raw[i]) or { 0, 0, 0, 0, '', '', '' }
  end
  return all, raw
end

function state.save(id, s) W.hset(K.state, id, cmsgpack.pack(s)) end

-- The state of a job whose run under `lease` has just ended, however it ended.
function state.after_run(lease)
  return { lease.attempts + 1, lease.stalls, lease.started, 0, lease.worker, '', '' }
end
