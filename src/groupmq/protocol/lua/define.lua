--[[
Store the definition of a repeating job, new or changed. The stored value must still be the one that the client has
read, so that two processes that define the same repeat at once do not overwrite each other's change.

Arguments
  id          id of the repeat
  seen        SHA1 of the stored value as the client read it, in hex; '' = there was none
  definition  lib/repeats.lua
  tick        epoch ms: also add this occurrence now; absent = none
  preamble    of large jobs: the bytes that precede the data in their body
Blob       the body of its jobs; with `preamble` only the data (lib/bodies.lua)
Reply      1 = stored, 0 = another process has changed it: read again
Events     added, if `tick` is given
Cost       some 15 commands; if the next tick is now earlier, one more per worker
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/meta"
--- @include "lib/group"
--- @include "lib/repeats"
--- @include "lib/mail"
--- @include "lib/wake"
--- @writes remembers
local definition, stored = A.definition, redis.call('HGET', K.repeats, A.id)
if (stored and redis.sha1hex(stored) or '') ~= A.seen then return 0 end
local body = repeats.body(A.id, A.preamble or blob, A.preamble and blob)
group.load({ definition.group })
if A.tick then repeats.enter(A.id, definition, body, A.tick) end
if definition.next > 0 then repeats.save(A.id, definition, body) else repeats.remove(A.id) end
local before, first = meta.repeat_at, repeats.set_first_tick()
local sooner = first and (not before or first < before)
if sooner then
  mail.send_all() -- busy workers do not wait for the marker `wake`
  wake.up() -- an idle worker need not have registered in this partition: without a job there it has no heartbeat
end
return commit(1)
