--[[
Store the definition of a repeating job, new or changed, or remove it. What the client has read must still be true:
it is compared first, so two processes that define the same at once do not undo each other.

Arguments  id, size (bytes of the stored value as it was read, 0 = there was none), definition (lib/repeats.lua;
           absent = remove), tick (epoch ms: also add this occurrence now; absent = none)
Blob       the stored value as it was read, then the body of its jobs
Reply      1 done, 0 somebody changed it meanwhile: read again
]]
--- @include "lib/repeats"
--- @include "lib/settle"
--- @include "lib/wake"
--- @include "lib/mail"
local blob, definition = ARGV[2] or '', A.definition
local body = string.sub(blob, A.size + 1)
if (redis.call('HGET', K.repeats, A.id) or '') ~= string.sub(blob, 1, A.size) then return 0 end
if definition then
  group.load({ definition.group })
  if A.tick then repeats.enter(A.id, definition, body, A.tick) end
  if definition.next > 0 then repeats.save(A.id, definition, body) else repeats.remove(A.id) end
else
  repeats.remove(A.id)
end
local first = repeats.settle()
local sooner = first and (not meta.repeat_at or first < meta.repeat_at)
if sooner then mail.send_all() end -- workers that are busy do not look at the marker
if settle.groups() or horizon.moved() then wake.up() end
W.commit(definition ~= nil)
return 1
