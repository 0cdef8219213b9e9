--[[ Repair repeats and their ticks. ]]
--- @include "lib/keys"
--- @include "lib/meta"
--- @include "lib/repeats"
--- @include "lib/repair/repair"
--- @private

-- Every defined repeat must have its next tick, and every tick a defined repeat.
function repair.repeats(rids)
  local values = #rids > 0 and redis.call('HMGET', K.repeats, unpack(rids)) or {}
  local ticks = #rids > 0 and redis.call('ZMSCORE', K.ticks, unpack(rids)) or {}
  for i = 1, #rids do
    local sound = values[i] and repeats.is_sound(values[i])
    if values[i] and not sound then
      repair.report('repeat that cannot be read', rids[i])
      repeats.remove(rids[i])
    elseif ticks[i] and not values[i] then
      repair.report('tick of no repeat', rids[i])
      repeats.remove(rids[i])
    elseif sound then
      local definition, body = repeats.unpack(values[i])
      if repeats.data(rids[i], body) == false then
        repair.report('repeat whose data is lost', rids[i])
        repeats.remove(rids[i])
      elseif tonumber(ticks[i] or nil) ~= definition.next then
        repair.report('repeat that does not tick', rids[i])
        repeats.save(rids[i], definition, body)
      end
    end
  end
  local first = redis.call('ZRANGE', K.ticks, 0, 0, 'WITHSCORES')[2]
  if meta.repeat_at ~= tonumber(first or nil) then repair.report('wrong time of the next tick', 'repeat_at') end
  if #repair.found() > 0 then repeats.set_first_tick() end
end
