--[[
Changes of states and results (lib/state.lua). They are noted for the commit only at the end of the call, because a
state that is saved and then forgotten in the same call (a job that finished and is not kept) must leave nothing.
]]
--- @include "lib/call"
--- @include "lib/keys"
--- @include "lib/meta"
--- @include "lib/writes"
--- @include "lib/state"
local state_changes = {}
--- @private
local NONE = {}
local LARGE = 32768 -- bytes

function state_changes.save(id, s)
  call.saved = call.saved or {}
  call.saved[id] = s
end

function state_changes.save_result(id, result)
  call.results = call.results or {}
  call.results[id] = result
  if #result > LARGE then meta.large = true end
end

function state_changes.forget(id)
  if call.saved then call.saved[id] = nil end
  if call.results then call.results[id] = nil end
  W.hdel(K.state, id)
  W.hdel(K.results, id)
  if meta.attempts then state_changes.forget_history(id) end
end

function state_changes.forget_history(id) W.hdel(K.state, HISTORY .. id) end

function state_changes.note()
  for id, s in pairs(call.saved or NONE) do W.hset(K.state, id, cmsgpack.pack(s)) end
  for id, result in pairs(call.results or NONE) do W.hset(K.results, id, result) end
end
