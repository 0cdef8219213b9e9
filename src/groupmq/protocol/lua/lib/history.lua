--[[
The history of a job: its runs that ended without completing it, oldest first, the newest KEPT of them. It is one value
in `state`, beside the state of the job, in the field HISTORY .. id: so both are deleted by the same command, and a job
that completes at its first attempt costs no further command. No id begins with that byte, because ids are UTF-8.

  value   entry after entry: its length (4 bytes), then a msgpack array {attempt, outcome, error (class with its path,
          '' = none), reason, end of the stack, worker, started, ended, fence}

The run that completed or failed a job is in its state and not here; `attempts.lua` returns both. When an operator
redrives a failed job, its last run is appended here too.

`attempts` in `meta`: whether there ever was an entry. `loose`: whether a job ever had an entry without a state that
says it has run (it was released or rate-limited at its first attempt, or redriven).
]]
--- @include "lib/call"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/seen"
--- @include "lib/meta"
--- @include "lib/writes"
--- @include "lib/state"
local history = {}
--- @private
local KEPT, REASON_BYTES, STACK_BYTES = 20, 1000, 3000
local STARTED, FENCE = 3, 8

-- The first or the last bytes of a text, never cut inside a UTF-8 character.
local function first_bytes(text)
  if #text <= REASON_BYTES then return text end
  return (string.gsub(string.sub(text, 1, REASON_BYTES), '[\192-\255]?[\128-\191]*$', '')) .. '...'
end

local function last_bytes(text)
  if #text <= STACK_BYTES then return text end
  return '...' .. (string.gsub(string.sub(text, -STACK_BYTES), '^[\128-\191]+', ''))
end

-- Append a run that has ended to the history of its job. `s`: the state of the job after the run. `loose`: no stored
-- state says that it ran.
function history.add(id, s, outcome, loose)
  local entry = cmsgpack.pack({
    s[ATTEMPTS], outcome, s[ERROR] or '', first_bytes(s[REASON]), last_bytes(s[STACK]), s[WORKER], s[STARTED],
    s[FINISHED] > 0 and s[FINISHED] or now, s[FENCE],
  })
  call.attempts_of = call.attempts_of or {}
  local entries = call.attempts_of[id] or {}
  call.attempts_of[id] = entries
  entries[#entries + 1] = { entry = entry, fence = s[FENCE] }
  meta.attempts = true
  if loose then meta.loose = true end
end

-- How the last run of a failed job ended, from its state. Only an exception of a handler has an error class.
function history.outcome_of(s)
  if (s[ERROR] or '') ~= '' then return 'failed' end
  if s[REASON] == 'cancelled' then return 'cancelled' end
  return string.sub(s[REASON], 1, 8) == 'stalled:' and 'stalled' or 'failed'
end

-- Keep the last run of a job that is redriven: its state is about to be deleted.
function history.keep_last(id, s)
  if s[FENCE] > 0 then history.add(id, s, history.outcome_of(s), true) end
end

-- The value with `entries` appended. An entry with the fence of the one before it is the same run and is left out.
local function appended(value, entries)
  local parts, last = {}, nil
  local at = 1
  while at < #value do
    local size = struct.unpack('>I4', value, at)
    parts[#parts + 1] = string.sub(value, at, at + 3 + size)
    at = at + 4 + size
  end
  if parts[1] then last = cmsgpack.unpack(string.sub(parts[#parts], 5))[9] end
  for i = 1, #entries do
    local one = entries[i]
    if one.fence ~= last then parts[#parts + 1] = struct.pack('>I4', #one.entry) .. one.entry end
    last = one.fence
  end
  return table.concat(parts, '', math.max(1, #parts - KEPT + 1))
end

function history.note()
  local entries_of, ids, fields = call.attempts_of, {}, {}
  for id in pairs(entries_of) do
    ids[#ids + 1] = id
    fields[#fields + 1] = HISTORY .. id
  end
  seen.add(K.state)
  local values = redis.call('HMGET', K.state, unpack(fields))
  for i = 1, #ids do W.hset(K.state, fields[i], appended(values[i] or '', entries_of[ids[i]])) end
end
