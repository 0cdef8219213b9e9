--[[
An idle worker offers a free slot, and the next `add` of a single job grants the job to it at once
(transitions/grant.lua). Otherwise the add wakes a worker, which then has to make a call to get the job.

`offer` in `meta` is empty, or one of these:

  'o', lease (6 bytes, ms), worker                     an offer. It stands only while no job is ready: a call that
                                                       leaves one ready wakes a worker and ends the offer (offer.note)
  'g', fence (7 bytes), job id (2 bytes of length),    a granted job, until its worker is known to have received it, or
       worker                                          until its lease is over. Meanwhile no offer is stored

The job travels in `grants:<worker>`, on which its worker blocks. A job that is still in that key was not received by
anyone, so it has not begun. If the server has handed it out, the reply may be lost: each `advance` of a worker names
the last grant that it has received, and a grant after that is repeated in the reply.
]]
--- @include "lib/call"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/meta"
--- @include "lib/writes"
--- @include "lib/lease"
local offer = {}
--- @private

local OFFERED, GRANTED = 111, 103 -- the bytes 'o' and 'g'

-- The worker whose offer stands, and its lease in ms; nil if there is none. A damaged value counts as none.
function offer.standing()
  local raw = meta.offer
  if string.byte(raw) ~= OFFERED or #raw < 8 then return nil end
  local lease_ms = struct.unpack('>I6', raw, 2)
  return string.sub(raw, 8), lease_ms
end

-- The job that was granted and may not have been received: worker, id, fence; nil if there is none.
function offer.granted()
  local raw = meta.offer
  if string.byte(raw) ~= GRANTED or #raw < 10 then return nil end
  local fence, size = struct.unpack('>I7I2', raw, 2)
  if #raw <= 10 + size then return nil end
  return string.sub(raw, 11 + size), string.sub(raw, 11, 10 + size), fence
end

-- Store the offer of `worker`, which has a free slot while nothing is ready.
function offer.make(worker, lease_ms)
  if not offer.granted() then meta.offer = 'o' .. struct.pack('>I6', lease_ms) .. worker end
end

-- End the offer of `worker`, if it stands.
function offer.withdraw(worker)
  if offer.standing() == worker then meta.offer = '' end
end

-- Send a job to the worker whose offer it uses up. `rec`: its record.
function offer.use(worker, lease_ms, id, fence, rec)
  meta.offer = 'g' .. struct.pack('>I7I2', fence, #id) .. id .. worker
  W.zadd(K.grants .. worker, '0', struct.pack('>I7I6I6I2', fence, now, lease_ms, #id) .. id .. rec)
end

-- Whether nobody has received the granted job yet.
function offer.is_unread(worker) return redis.call('ZCARD', K.grants .. worker) > 0 end

-- Forget the granted job, which need not be watched any longer. `read`: its worker has received it.
function offer.forget(worker, read)
  meta.offer = ''
  if not read then W.unlink(K.grants .. worker) end
end

-- Forget a grant whose lease this call has ended, and end the offer if a worker is woken. Runs at the end of the call.
function offer.note()
  local worker, id = offer.granted()
  if worker and lease.is_over(id) then
    offer.forget(worker, false)
  elseif call.wake and offer.standing() then
    meta.offer = ''
  end
  if meta.offer ~= meta.stored_offer then W.hset(K.meta, 'offer', meta.offer) end
end
