--[[ The beginning and the end of a call that changes something. ]]
--- @include "lib/reading"
--- @include "lib/call"
--- @include "lib/kept_replies"
--- @include "lib/horizon"
--- @include "lib/body_changes"
--- @include "lib/state_changes"
--- @include "lib/history"
--- @include "lib/lease_changes"
--- @include "lib/events"
--- @include "lib/measure"
--- @include "lib/meta"
--- @include "lib/meta_changes"
--- @include "lib/interrupts"
--- @include "lib/stopping"
--- @include "lib/blocking_changes"
--- @include "lib/breaker_changes"
--- @include "lib/turn"
--- @include "lib/wake"
--- @include "lib/reserve"
--- @include "lib/offer"
--- @include "lib/group_changes"
--- @include "transitions/enter"
--- @include "lib/sending"

-- Returns a reply if the call must end at once: an error, or the answer to an earlier request of the same call.
local function begin_writes(given_keys, argv)
  local early = begin_reads(given_keys, argv)
  if early ~= nil then return early end
  call.removals, call.additions, call.drops, call.puts = {}, {}, {}, {}
  return kept_replies.begin(argv)
end

-- The end of a call: note, check and write the changes that it has made in memory. Returns the reply, which is stored
-- in case the call is sent again. `wait_at`: index in the reply that gets the ms until something is due.
local function commit(reply, wait_at)
  -- Decide the states of groups, whether to wake a worker, and whether the turn of an exclusive queue is over.
  if group_changes.note() or horizon.moved() then wake.up() end
  if wait_at then reply[wait_at] = horizon.wait() end
  if rules.exclusive then turn.end_if_idle() end
  -- Note the changes that were kept for the end of the call.
  if call.begun then lease_changes.note() end
  if call.bodies then body_changes.note() end
  if call.saved or call.results then state_changes.note() end
  if call.attempts_of then history.note() end
  if call.ttls then note_ttls() end
  if call.stopping then stopping.note() end
  if call.blocking then blocking_changes.note() end
  if call.breakers then breaker_changes.note() end
  if meta.interrupts then interrupts.note() end
  if call.wake then wake.note() end
  if call.asked then reserve.note() end
  if meta.offer ~= '' or meta.stored_offer ~= '' then offer.note() end
  measure.note()
  if call.events then events.note() end
  if call.requester then kept_replies.note(reply) end
  meta_changes.note()
  -- Nothing was written before this line. sending.check may still fail; after it nothing can.
  sending.check()
  sending.send()
  if call.entry then events.write() end
  if call.kept_reply then kept_replies.write() end
  return reply
end
