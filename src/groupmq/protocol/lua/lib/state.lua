--[[
The part of a job that changes: one msgpack array in `state`, absent if the job never ran:
attempts (runs that ended), stalls, started, finished, worker, reason, stack, fence (of the last run), error
(class with its path, absent or '' = none).
Text only, never opaque bytes: the client decodes it as text.

Changes are kept in `call.saved` until the call ends (lib/state_changes.lua): job id -> new state. Later reads in the
same call see them.
]]
--- @include "lib/call"
--- @include "lib/keys"
--- @include "lib/seen"
local state = {}
local ATTEMPTS, STALLS, FINISHED, WORKER, REASON, STACK, ERROR = 1, 2, 4, 5, 6, 7, 9 -- 3 is started, 8 the fence
local HISTORY = '\255' -- before the id: the field of its earlier attempts (lib/history.lua)
--- @private
local TYPES = { 'number', 'number', 'number', 'number', 'string', 'string', 'string', 'number' } -- without the error
local FEW = 8 -- for so few jobs, reading their states costs no more than HLEN

-- The state in a stored value; false if the value cannot be read, after damage from outside. The job then counts as one
-- that never ran: an error here would stop every call that reads the job, and with it the queue.
function state.read(raw)
  local readable, s = pcall(cmsgpack.unpack, raw)
  if not readable or type(s) ~= 'table' then return false end
  for i = 1, #TYPES do
    if type(s[i]) ~= TYPES[i] then return false end
  end
  return s
end

-- The states of `ids` with the changes of this call: a job that is put back and taken again in one call has its new
-- attempts already. Returns them decoded and packed; two empty tables if no job has a state.
function state.load(ids)
  local saved = call.saved
  if #ids == 0 then return {}, {} end
  seen.add(K.state)
  if #ids > FEW and not saved and redis.call('HLEN', K.state) == 0 then return {}, {} end
  local raw, all, any = redis.call('HMGET', K.state, unpack(ids)), {}, false
  for i = 1, #ids do
    if saved and saved[ids[i]] then raw[i] = cmsgpack.pack(saved[ids[i]]) end
    all[i] = raw[i] and state.read(raw[i]) or false
    raw[i] = all[i] and raw[i]
    any = any or all[i] ~= false
  end
  if not any then return {}, {} end
  return all, raw
end

-- The state of a job that never ran.
function state.fresh() return { 0, 0, 0, 0, '', '', '', 0 } end
