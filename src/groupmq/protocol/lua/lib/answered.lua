--[[
The answers of calls that took effect, kept for a while. A client whose connection broke does not know whether its call
arrived, and sends it again: it must get the first answer, and nothing may change a second time.

Such a call has more arguments, after its own and the revision of the settings:
  the requester, a part of the client that has only one call under way at a time
  the number of the call among those of its requester
  'again' if the call was sent before, else absent or empty
  only if the call must not take effect before another one has: the requester and the number of that one

Only the answer to the last call of a requester is kept, so memory grows with the clients and not with the calls. Two
hashes are used in alternation, each for a PERIOD: an answer is kept for at least one PERIOD, and both keys
expire when no more calls come.

Only a call that was sent before is looked up; other calls do not pay for it. But the second request may overtake the
first, and then the first must be recognised: for some time after a resent call took effect (`resent` in `meta`), all
calls are looked up.

A call that was answered is not executed again: `answered.begin` returns the answer. The reply of a call that does not
end with `commit` (it changed nothing) is not kept, and the call is executed again when it is sent again.

A client may send a call before it has the answer of the one before it (client/queue/pipelining.py). If that one was
refused, or has been overtaken on another connection, its answer is not kept yet: the later one is refused as well.
]]
--- @include "lib/call"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/meta"
local answered = {}
--- @private
local PERIOD = 30000
local KEEP = 3 * PERIOD

-- Returns the answer that a call of a requester got, if it is kept.
function answered.find(name, number)
  local known = number .. ' '
  for _, kept in ipairs({ K.calls_even, K.calls_odd }) do
    local raw = redis.call('HGET', kept, name)
    if raw and string.sub(raw, 1, #known) == known then return cmsgpack.unpack(string.sub(raw, #known + 1)) end
  end
end

-- Returns a reply if the call must end at once: the answer that it got the first time, or an error, because a call that
-- must come before it has not taken effect.
function answered.begin(argv)
  local name, again, before = argv[4], argv[6] == 'again', argv[7]
  if not name then return end
  call.requester, call.number, call.again = name, argv[5], again
  local answer
  if again or math.abs(now - meta.resent) < KEEP then answer = answered.find(name, call.number) end
  if not answer and before and not answered.find(before, argv[8]) then
    return redis.error_reply('GROUPMQ_ORDER the call before this one has not taken effect')
  end
  return answer
end

function answered.note(reply)
  local period = math.floor(now / PERIOD)
  -- A clock that steps back a little must not delete recent answers.
  if period == meta.period - 1 then period = meta.period end
  call.answer_key, call.new_period = period % 2 == 0 and K.calls_even or K.calls_odd, period ~= meta.period
  call.answer = call.number .. ' ' .. cmsgpack.pack(reply)
  meta.period = period
  if call.again then meta.resent = now end
end

-- Runs last, with pcall: failing to store the answer must not fail a call that has already written.
function answered.write()
  local key, is_new = call.answer_key, call.new_period
  if is_new then redis.pcall('UNLINK', key) end
  redis.pcall('HSET', key, call.requester, call.answer)
  if is_new then redis.pcall('PEXPIRE', key, KEEP) end
end
