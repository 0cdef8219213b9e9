--[[
A lane is a sequence of requests of one worker, one at a time. The last request and its reply are kept, so a request
that is sent again after its reply was lost is answered the same and does nothing twice. An older request comes from a
connection that was given up, and nobody waits for its answer: it must take nothing.
]]
--- @include "lib/lease"
local lane = {}
--- @private

-- What `lane.remember` was given for this request, or for a later one. Read only then: it is long.
function lane.last(name, request)
  local raw = redis.call('HGET', K.lanes, name)
  if not raw or struct.unpack('>I7', raw) < request then return nil end
  return cmsgpack.unpack(string.sub(raw, 8))
end

-- Tokens of one call follow each other, so the first is enough.
function lane.remember(name, request, refused, ids, token)
  W.hset(K.lanes, name, struct.pack('>I7', request) .. cmsgpack.pack({ refused, ids, token }))
end

-- The jobs of the remembered reply and their rows, as take.jobs gave them. The id of one whose lease stands no more is
-- false.
function lane.jobs(last)
  local ids, first = last[2], last[3]
  local leases = lease.load(ids)
  local recs = #ids > 0 and redis.call('HMGET', K.jobs, unpack(ids)) or {}
  local _, states = state.load(ids)
  local n, rows, before = 0, {}, nil -- the group of the job before, in this reply
  for i = 1, #ids do
    local l = leases[i]
    if l and l.token == first + i - 1 and recs[i] then
      n = n + 1
      if l.ahead and l.gid == before then rows[#rows] = rows[#rows] + 1 else rows[#rows + 1] = 1 end
      before = l.gid
    else
      ids[i] = false
    end
  end
  return { ids, first, states, recs }, #rows < n and rows or {}
end
