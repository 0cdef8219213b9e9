--[[
Send what was noted (lib/writes.lua): first a check of every key that gets a command, then the commands. After the
check, `sending.send` cannot fail half-way.
]]
--- @include "lib/keys"
--- @include "lib/writes"
--- @include "lib/call"
local sending = {}
--- @private
local NONE = {}

local function look(command, key)
  if not call.seen[key] then
    redis.call(command, key)
    call.seen[key] = true
  end
end

local function look_at_all(command, lists)
  for key, list in pairs(lists) do
    if list[1] ~= nil then look(command, key) end
  end
end

local function note_unseen(key)
  if not call.seen[key] then
    W.unseen(key)
    call.seen[key] = true
  end
end

local function note_all_unseen(lists)
  for key, list in pairs(lists) do
    if list[1] ~= nil then note_unseen(key) end
  end
end

-- Check that every key that gets a command has the right type and is on this node: a key that was overwritten, or that
-- resharding has moved away, must stop the call before anything is written. Keys that this call has read are not read
-- again. One command checks all sorted sets. It includes `never`, a key that does not exist, for two reasons: with it the
-- intersection is empty at once, and in a slot that is being moved a node refuses to look at a key that is not there. So
-- no call writes into such a slot. It would not be enough that all keys are here: one that a call empties and fills again
-- is gone for a moment, and the node would stop the call there, half-way. A call that removes nothing and tells of no
-- event need not look.
function sending.check()
  if call.HSET then look_at_all('HLEN', call.HSET) end
  if call.HDEL then look_at_all('HLEN', call.HDEL) end
  if call.LPUSH then look_at_all('LLEN', call.LPUSH) end
  for _, one in ipairs(call.shared or NONE) do
    if one[1] == 'HDEL' then look('HLEN', one[2]) else note_unseen(one[2]) end
  end
  if call.ZADD then note_all_unseen(call.ZADD) end
  if call.ZREM then note_all_unseen(call.ZREM) end
  if call.unseen or call.entry or call.lost or call.popped or call.shared or call.ZREM or call.HDEL then
    W.unseen(K.never)
    redis.call('ZINTERCARD', #call.unseen, unpack(call.unseen))
  end
end

local function send_list(command, key, list)
  local n = #list
  if n <= CHUNK then
    if n > 0 then redis.call(command, key, unpack(list)) end
    return
  end
  for from = 1, n, CHUNK do
    redis.call(command, key, unpack(list, from, math.min(from + CHUNK - 1, n)))
  end
end

local function send(command)
  for key, list in pairs(call[command]) do send_list(command, key, list) end
end

function sending.send()
  local lost, popped, gained, shared = call.lost, call.popped, call.gained, call.shared
  if lost then
    for i = 1, #lost, 2 do redis.call('ZREM', lost[i], lost[i + 1]) end
  end
  if popped then
    for i = 1, #popped, 2 do redis.call('ZREMRANGEBYRANK', popped[i], -popped[i + 1], -1) end
  end
  if shared then
    for i = 1, #shared do send_list(unpack(shared[i])) end
  end
  if call.ZREM then send('ZREM') end
  if call.HDEL then send('HDEL') end
  if call.unlinked then redis.call('UNLINK', unpack(call.unlinked)) end
  if call.HSET then send('HSET') end
  if call.ZADD then send('ZADD') end
  if gained then
    for i = 1, #gained, 2 do redis.call('ZADD', gained[i], 0, gained[i + 1]) end
  end
  if call.LPUSH then
    send('LPUSH')
    for key, keep in pairs(call.kept) do redis.call('LTRIM', key, 0, keep - 1) end
  end
end
