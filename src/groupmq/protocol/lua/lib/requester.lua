--[[
The requesters of workers (lib/kept_replies.lua has those of clients). A requester is a part of a worker that makes one
request at a time and numbers its requests. The last one and its reply are kept, so that a request that is sent again
after its reply was lost gets the same answer and does nothing twice. An older request comes from a connection that was
given up, and nothing waits for its answer: it must take no job.
]]
--- @include "lib/keys"
--- @include "lib/seen"
--- @include "lib/writes"
--- @include "lib/state"
--- @include "lib/lease"
--- @include "lib/call"
--- @include "lib/bodies"
local requester = {}
--- @private
-- The fields of a kept reply: indexes of the refused outcomes; ids of the jobs; the first fence (the fences of one call
-- are consecutive, so it is enough); sizes of batches, which cannot be derived from leases, false = none; and, if there
-- are any, the jobs whose lease or ttl has ended, flat.
local REFUSED, IDS, FENCE, ROWS, STALLED, EXPIRED = 1, 2, 3, 4, 5, 6

-- The reply that is kept for this request or a later one, else nil. The reply to an earlier one is not decoded, because
-- it is long.
function requester.last(name, request)
  seen.add(K.requesters)
  local raw = redis.call('HGET', K.requesters, name)
  if not raw or struct.unpack('>I7', raw) < request then return nil end
  return cmsgpack.unpack(string.sub(raw, 8))
end

-- The jobs of the reply to this request that have not begun: id, fence; nil if the request has not been carried out.
function requester.unbegun(name, request)
  local last = requester.last(name, request)
  if not last then return nil end
  local ids, first, found = last[IDS], last[FENCE], {}
  local leases = lease.load(ids)
  for i = 1, #ids do
    local l = leases[i]
    if l and l.fence == first + i - 1 and not l.begun then found[#found + 1] = { ids[i], l.fence } end
  end
  return found
end

-- Keep the reply to this request.
function requester.remember(name, request, refused, jobs, rows, stalled, expired)
  local reply = { refused, jobs[1], jobs[2], rows }
  if stalled[1] or expired[1] then
    reply[STALLED], reply[EXPIRED] = stalled, expired
  end
  W.hset(K.requesters, name, struct.pack('>I7', request) .. cmsgpack.pack(reply))
end

-- The jobs whose lease or ttl ended in the call of the remembered reply: stalled, expired.
function requester.ended(last) return last[STALLED] or {}, last[EXPIRED] or {} end

-- The refused outcomes of that call.
function requester.refused(last) return last[REFUSED] end

-- The set of indexes at which a batch begins, nil if the reply had none.
local function begins_of(rows)
  if not (rows and rows[1]) then return nil end
  local begins, at = {}, 1
  for i = 1, #rows do
    begins[at] = true
    at = at + rows[i]
  end
  return begins
end

-- The jobs of the remembered reply, how many of each group were taken together, as take_next returned them, and when
-- they were taken. The id of a job whose lease no longer stands is false.
function requester.jobs(last)
  local ids, first = last[IDS], last[FENCE]
  local leases = lease.load(ids)
  local recs = #ids > 0 and redis.call('HMGET', K.jobs, unpack(ids)) or {}
  local _, states = state.load(ids)
  local begins = begins_of(last[ROWS])
  local n, rows, before, taken_at = 0, {}, nil, nil -- `before`: group of the previous job in this reply
  for i = 1, #ids do
    local l = leases[i]
    if begins and begins[i] then before = nil end
    if l and l.fence == first + i - 1 and recs[i] and bodies.bring(ids[i], recs[i], i) then
      n = n + 1
      if (begins or l.follows) and l.gid == before then rows[#rows] = rows[#rows] + 1 else rows[#rows + 1] = 1 end
      before, taken_at = l.gid, l.started
    else
      ids[i] = false
    end
  end
  return { ids, first, states, recs, call.brought }, #rows < n and rows or {}, taken_at
end

-- The same for a job that an add has granted.
function requester.granted(id, fence) return requester.jobs({ [IDS] = { id }, [FENCE] = fence }) end
