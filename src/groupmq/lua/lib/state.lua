--[[
What changes about a job, one msgpack array in `state`, absent while the job never ran:
attempts (runs that ended), stalls, started, finished, worker, reason, stack.
Text only, never opaque bytes: the client decodes it as text.

A state or result that is saved and then forgotten in the same call (a job that finished and is not kept) must leave
nothing, so both are noted here and handed over at commit.
]]
--- @include "lib/keys"
--- @include "lib/writes"
local state = {}
local ATTEMPTS, STALLS, FINISHED, WORKER, REASON, STACK = 1, 2, 4, 5, 6, 7 -- 3 is started
--- @private
local saved, results = {}, {}

-- States as this call leaves them: a job that is put back and taken again in one call has its new attempts already.
function state.load(ids)
  local any = #ids > 0 and (next(saved) or redis.call('HLEN', K.state) > 0)
  if not any then return {}, {} end
  local raw = redis.call('HMGET', K.state, unpack(ids))
  local all = {}
  for i = 1, #ids do
    if saved[ids[i]] then raw[i] = cmsgpack.pack(saved[ids[i]]) end
    all[i] = raw[i] and cmsgpack.unpack(raw[i]) or false
  end
  return all, raw
end

function state.save(id, s) saved[id] = s end
function state.save_result(id, result) results[id] = result end

function state.forget(id)
  saved[id], results[id] = nil, nil
  W.hdel(K.state, id)
  W.hdel(K.results, id)
end

-- The state of a job that never ran.
function state.fresh() return { 0, 0, 0, 0, '', '', '' } end

W.before_commit[#W.before_commit + 1] = function()
  for id, s in pairs(saved) do W.hset(K.state, id, cmsgpack.pack(s)) end
  for id, result in pairs(results) do W.hset(K.results, id, result) end
end
