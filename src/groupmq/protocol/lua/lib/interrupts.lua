--[[
Requests of an operator to the worker that holds a job. `interrupts`: job id -> kind (1 byte), fence (7 bytes), worker.

  cancel  a running job: its handler must be stopped. The job is active until the worker reports its outcome
  recall  a job that may not have begun: the worker must give it back, or answer that it has begun

The worker's heartbeat is woken (lib/mail.lua) and reads its interrupts at once. An interrupt ends with the lease that
it refers to, a recall also when its job is known to have begun. If the worker is gone, the lease expires instead.
`interrupts` in `meta` is 1 while there may be any, so that other calls need not look.
]]
--- @include "lib/call"
--- @include "lib/keys"
--- @include "lib/meta"
--- @include "lib/writes"
--- @include "lib/lease"
--- @include "lib/mail"
local interrupts = { CANCELLED = 'cancelled' }
--- @private
local CANCEL, RECALL, NONE = 1, 2, {}

local function put(kind, id, l)
  local worker = lease.worker(l)
  W.hset(K.interrupts, id, struct.pack('>BI7', kind, l.fence) .. worker)
  meta.interrupts = true
  mail.send(worker)
end

function interrupts.cancel(id, l) put(CANCEL, id, l) end
function interrupts.recall(id, l) put(RECALL, id, l) end

local function is(kind, id)
  local raw = meta.interrupts and redis.call('HGET', K.interrupts, id)
  return raw and string.byte(raw) == kind or false
end

-- Whether the current run of `id` must be stopped.
function interrupts.cancels(id) return is(CANCEL, id) end

-- Whether an operator has asked for `id`, which may not have begun.
function interrupts.recalls(id) return is(RECALL, id) end

-- Drop the recall of a job whose worker has reported that it has begun: the report is the answer.
function interrupts.begun(id)
  if is(RECALL, id) then W.hdel(K.interrupts, id) end
end

-- Fences of the worker's runs to cancel, and of its jobs to give back. All of them are returned, not only
-- those that the worker names: the reply that hands it a job may still be on its way. Interrupts that this call has
-- ended are left out.
function interrupts.of(worker)
  local found = { {}, {} }
  if not meta.interrupts then return found end
  local all = redis.call('HGETALL', K.interrupts)
  if not all[1] then meta.interrupts = false end -- later calls need not look
  local over, begun = call.over or NONE, call.begun or NONE
  for i = 2, #all, 2 do
    local id, kind, fence, after = all[i - 1], struct.unpack('>BI7', all[i])
    local ended = over[id] or (kind == RECALL and begun[id])
    if not ended and string.sub(all[i], after) == worker then
      local fences = found[kind]
      fences[#fences + 1] = fence
    end
  end
  return found
end

-- Drop the interrupts of leases that this call has ended.
function interrupts.note()
  for id in pairs(call.over or NONE) do W.hdel(K.interrupts, id) end
end
