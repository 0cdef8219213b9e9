--[[
Changes of the data that is kept beside records (lib/bodies.lua). They are noted for the commit only at the end of the
call: data that is stored and then dropped in the same call (a debounced job that is replaced) must leave nothing.
]]
--- @include "lib/call"
--- @include "lib/keys"
--- @include "lib/meta"
--- @include "lib/writes"
--- @include "lib/record"
local body_changes = {}
--- @private
local LARGE = 8192 -- bytes of data; core/record.py has the same number

-- `call.bodies`: job id -> data that this call stores.
local function put(id, data)
  call.bodies = call.bodies or {}
  call.bodies[id] = data
  meta.large = true
end

-- Delete the data that is kept beside the record of the job.
function body_changes.drop(id)
  if call.bodies then call.bodies[id] = nil end
  if meta.large then W.hdel(K.bodies, id) end
end

-- The same for many jobs. The caller must not change the list afterwards.
function body_changes.drop_all(ids)
  if meta.large then W.hdel_all(K.bodies, ids) end
end

-- Returns the part of the record of job `id` after `created`. `body`: that part with the data; or without it, if `data`
-- is given. `replaces`: the job may have had other data before.
function body_changes.enter(id, body, data, replaces)
  if not data and #body > LARGE then body, data = record.divided(body, LARGE) end
  if data then
    put(id, data)
    return record.set_beside(body, 3, true)
  end
  if replaces then body_changes.drop(id) end
  return body
end

-- Returns the record of job `id` with other data.
function body_changes.replace(id, rec, data)
  local preamble = record.without_data(rec)
  if #data > LARGE then
    put(id, data)
    return record.set_beside(preamble, 25, true)
  end
  body_changes.drop(id)
  return record.set_beside(preamble, 25, false) .. data
end

function body_changes.note()
  for id, data in pairs(call.bodies) do W.hset(K.bodies, id, data) end
end
