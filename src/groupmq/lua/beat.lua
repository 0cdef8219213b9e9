--[[
One heartbeat of a worker: renew its leases, and its turn, in bulk and say that it lives.

Arguments  worker, info (text, absent = leave presence alone), lease (ms), held, flat: id, token, ...
Reply      {ids whose lease is no longer this worker's, ms until the next tick of a repeat or -1,
            runs of this worker that are to be stopped: id, token, flat}
]]
--- @include "lib/lease"
--- @include "lib/turn"
--- @include "lib/wake"
--- @include "lib/cancels"
local ids, lost = {}, {}
for i = 1, #A.held, 2 do ids[#ids + 1] = A.held[i] end
local leases = lease.load(ids)
for i = 1, #ids do
  if leases[i] and leases[i].token == A.held[2 * i] then
    W.zadd(K.active, now + A.lease, ids[i])
  else
    lost[#lost + 1] = ids[i]
  end
end
if turn.renew(A.worker, A.lease) then wake.up() end
if A.info then W.hset(K.workers, A.worker, string.format('%.0f', now) .. ' ' .. A.info) end
W.commit()
return { lost, meta.repeat_at and math.max(0, meta.repeat_at - now) or -1, cancels.of(A.worker) }
