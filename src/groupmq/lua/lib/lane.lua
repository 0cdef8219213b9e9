--[[
A lane is a sequence of requests of one worker, one at a time. The last request and its reply are kept, so a request
that is sent again after its reply was lost is answered the same and does nothing twice. An older request comes from a
connection that was given up, and nobody waits for its answer: it must take nothing.
]]
--- @include "lib/lease"
local lane = {}
--- @private

function lane.last(name, request)
  local raw = redis.call('HGET', K.lanes, name)
  if not raw then return nil end
  local last = cmsgpack.unpack(raw)
  return last[1] >= request and last or nil
end

-- Tokens of one call follow each other, so the first is enough.
function lane.remember(name, request, statuses, ids, token)
  W.hset(K.lanes, name, cmsgpack.pack({ request, statuses, ids, token }))
end

-- The jobs of the remembered reply whose leases still stand, and their rows, as take.jobs gave them.
function lane.jobs(last)
  local ids, first = last[3], last[4]
  local leases = lease.load(ids)
  local recs = #ids > 0 and redis.call('HMGET', K.jobs, unpack(ids)) or {}
  local _, raw_states = state.load(ids)
  local reply, rows, before = {}, {}, nil -- the group of the job before, in this reply
  for i = 1, #ids do
    local token = first + i - 1
    if leases[i] and leases[i].token == token and recs[i] then
      local at = #reply
      reply[at + 1], reply[at + 2], reply[at + 3], reply[at + 4] = ids[i], token, raw_states[i] or '', recs[i]
      local n, gid = #rows, leases[i].gid
      if leases[i].ahead and gid == before then rows[n] = rows[n] + 1 else rows[n + 1] = 1 end
      before = gid
    end
  end
  return reply, #rows < #reply / 4 and rows or {}
end
