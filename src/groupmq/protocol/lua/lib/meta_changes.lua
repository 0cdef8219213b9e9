--[[ Write the numbers of the queue (lib/numbers.lua) once per call, however many of them changed. ]]
--- @include "lib/keys"
--- @include "lib/meta"
--- @include "lib/numbers"
--- @include "lib/horizon"
--- @include "lib/writes"
local meta_changes = {}
--- @private

function meta_changes.note()
  meta.due = horizon.due()
  local packed = numbers.pack(meta)
  if packed ~= meta.stored then W.hset(K.meta, 'numbers', packed) end
end
