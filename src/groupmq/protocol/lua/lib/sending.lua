--[[
Send the changes that were noted (lib/writes.lua): first a check of every key that gets a command, then the commands.
After the check, `sending.send` cannot fail half-way.
]]
--- @include "lib/keys"
--- @include "lib/writes"
--- @include "lib/call"
local sending = {}
--- @private
local LOOKS = { HSET = 'HLEN', HDEL = 'HLEN', LPUSH = 'LLEN' } -- all others are of sorted sets

-- Check the keys of these commands, except the sorted sets, which it appends to `unseen`.
local function look(order, unseen)
  local seen = call.seen
  for i = 2, #order, 3 do
    local key = order[i]
    if not seen[key] and order[i + 1][1] ~= nil then
      seen[key] = true
      local command = LOOKS[order[i - 1]]
      if command then redis.call(command, key) else unseen[#unseen + 1] = key end
    end
  end
end

-- Check that every key that gets a command has the right type and is on this node: a key that was overwritten, or that
-- resharding has moved away, must stop the call before anything is written. Keys that this call has read are not read
-- again. One command checks all sorted sets. It includes `never`, a key that does not exist, for two reasons: with it
-- the intersection is empty at once, and in a slot that is being moved a node refuses to read a key that does not
-- exist. So no call writes into such a slot. It would not be enough that all keys are on this node: a key that a call
-- empties and fills again does not exist in between, and the node would stop the call there, half-way. A call that has
-- no sorted set to check, removes nothing and publishes no event does not need this command.
function sending.check()
  local unseen, removals = {}, call.removals
  look(removals, unseen)
  look(call.additions, unseen)
  if unseen[1] or removals[1] or call.entry then
    unseen[#unseen + 1] = K.never
    redis.call('ZINTERCARD', #unseen, unpack(unseen))
  end
end

local function send_chunks(command, key, list)
  for from = 1, #list, CHUNK do
    redis.call(command, key, unpack(list, from, math.min(from + CHUNK - 1, #list)))
  end
end

local function send(order)
  for i = 1, #order, 3 do
    local list = order[i + 2]
    local n = #list
    if n > CHUNK then
      send_chunks(order[i], order[i + 1], list)
    elseif n > 0 then
      redis.call(order[i], order[i + 1], unpack(list))
    end
  end
end

function sending.send()
  send(call.removals)
  if call.unlinked then redis.call('UNLINK', unpack(call.unlinked)) end
  send(call.additions)
  if call.kept then
    for key, keep in pairs(call.kept) do redis.call('LTRIM', key, 0, keep - 1) end
  end
end
