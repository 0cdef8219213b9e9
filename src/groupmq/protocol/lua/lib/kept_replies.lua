--[[
The replies of calls that took effect, kept for a while. A client whose connection broke does not know whether its call
arrived, and sends it again: it must get the first reply, and nothing may change a second time.

Such a call has more arguments, after its own and the revision of the settings:
  the requester, a part of the client that has only one call under way at a time
  the number of the call among those of its requester
  'again' if the call was sent before, else absent or empty
  only if the call must not take effect before another one has: the requester and the number of that one

Only the reply to the last call of a requester is kept, so memory grows with the clients and not with the calls. Two
hashes are used in alternation, each for a PERIOD: a reply is kept for at least one PERIOD, and both keys
expire when no more calls come.

Only a call that was sent before is looked up; other calls do not pay for it. But the second request may overtake the
first, and then the first must be recognised: for some time after a resent call took effect (`resent` in `meta`), all
calls are looked up.

A call whose reply is kept is not executed again: `kept_replies.begin` returns the reply. The reply of a call that does
not end with `commit` (it changed nothing) is not kept, and the call is executed again when it is sent again.

A client may send a call before it has the reply to the one before it (client/queue/pipelining.py). If that one was
refused, or has been overtaken on another connection, its reply is not kept yet: the later one is refused as well.
]]
--- @include "lib/call"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/meta"
local kept_replies = {}
--- @private
local PERIOD = 30000
local KEEP = 3 * PERIOD

-- Returns the reply that a call of a requester got, if it is kept.
function kept_replies.find(name, number)
  local known = number .. ' '
  for _, kept in ipairs({ K.calls_even, K.calls_odd }) do
    local raw = redis.call('HGET', kept, name)
    if raw and string.sub(raw, 1, #known) == known then return cmsgpack.unpack(string.sub(raw, #known + 1)) end
  end
end

-- Returns a reply if the call must end at once: the reply that it got the first time, or an error, because a call that
-- must come before it has not taken effect.
function kept_replies.begin(argv)
  local name, again, before = argv[4], argv[6] == 'again', argv[7]
  if not name then return end
  call.requester, call.number, call.again = name, argv[5], again
  local reply
  if again or math.abs(now - meta.resent) < KEEP then reply = kept_replies.find(name, call.number) end
  if not reply and before and not kept_replies.find(before, argv[8]) then
    return redis.error_reply('GROUPMQ_ORDER the call before this one has not taken effect')
  end
  return reply
end

function kept_replies.note(reply)
  local period = math.floor(now / PERIOD)
  -- A clock that steps back a little must not delete recent replies.
  if period == meta.period - 1 then period = meta.period end
  call.reply_key, call.new_period = period % 2 == 0 and K.calls_even or K.calls_odd, period ~= meta.period
  call.kept_reply = call.number .. ' ' .. cmsgpack.pack(reply)
  meta.period = period
  if call.again then meta.resent = now end
end

-- Runs last, with pcall: failing to store the reply must not fail a call that has already written.
function kept_replies.write()
  local key, is_new = call.reply_key, call.new_period
  if is_new then redis.pcall('UNLINK', key) end
  redis.pcall('HSET', key, call.requester, call.kept_reply)
  if is_new then redis.pcall('PEXPIRE', key, KEEP) end
end
