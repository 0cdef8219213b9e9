"""Defects of jobs that an add grants to an idle worker (`lua/lib/offer.lua`)."""

from __future__ import annotations

from tests.model.mutant import Mutant

STEADY = "rows: steady"

GRANTS = [
    # Which jobs
    Mutant("nothing is granted", "if not (worker and may_start(g, member)) then return end", "if true then return end"),
    Mutant("job granted in a paused queue", "if meta.paused or horizon.is_reached()", "if horizon.is_reached()"),
    Mutant(
        "job granted before others that are due",
        "if meta.paused or horizon.is_reached() or",
        "if meta.paused or",
        "default",
    ),
    Mutant(
        "job granted though its group is not ready", "return g.state == 'ready' and g.head == member", "return true"
    ),
    Mutant(
        "job granted where two may run at once",
        "not prefetch.group_allows(g) then return false end\n  group_state",
        "g.gated then return false end\n  group_state",
        "steady",
    ),
    Mutant(
        "job granted whose start a rate counts",
        "horizon.is_reached() or not prefetch.group_allows(g) then",
        "horizon.is_reached() or not prefetch.keeps_order(g) then",
        "group rate",
    ),
    Mutant("one of several jobs granted", "not (ids[2] or ttl or data) then", "not (ttl or data) then"),
    Mutant("job with a ttl granted", "not (ids[2] or ttl or data) then", "not (ids[2] or data) then", "default"),
    # The offer
    Mutant("an offer outlives work that is ready", "elseif call.wake and offer.standing() then", "elseif false then"),
    Mutant(
        "an offer where the queue has a rate",
        "prefetch.in_queue() and prefetch.heads_in_queue())",
        "true)",
        "queue rate",
    ),
    Mutant("an offer with round robin", "offer_slot(who, prefetch.in_queue() and", "offer_slot(who,", "round robin"),
    Mutant(
        "an offer that is withdrawn stands",
        "if A.offers == false then withdraw_offer(A.worker, A.received or 0) end",
        "",
    ),
    Mutant("an offer is kept after it was used", "  meta.offer = 'g' ..", "  local _ = 'g' .."),
    Mutant(
        "a busy worker offers a slot",
        "function reserve.works(worker)\n  offer.withdraw(worker)",
        "function reserve.works(worker)",
    ),
    # The grant
    Mutant("the lease of a grant is not due", "  horizon.put(now + lease_ms)\n  measure", "  measure"),
    Mutant("a grant counts no wait", "  measure.wait(0)\n", ""),
    Mutant("a grant is not published", "  events.give('active', { id }, { g.id }, { 1 }, worker)\n", ""),
    Mutant("a granted job counts as begun", "false, lease.GRANTED)", "false, lease.BEGUN)"),
    Mutant("a granted job takes no slot", "  members.pop(g, 1)\n  group.start(g)", "  members.pop(g, 1)"),
    Mutant("a granted job waits too", "  members.pop(g, 1)\n  group.start(g)", "  group.start(g)"),
    # Its worker receives it, or does not
    Mutant(
        "a lost grant is not repeated",
        "  if who.take == 0 or lease.is_over(id) then return nil end",
        "  if true then return nil end",
    ),
    Mutant("a grant that was received is repeated", "  if (who.received or 0) >= fence then", "  if false then"),
    Mutant(
        "a grant that has ended is repeated",
        "if who.take == 0 or lease.is_over(id) then",
        "if who.take == 0 then",
        "offers: plain",
    ),
    Mutant("a grant is repeated to a worker without a slot", "if who.take == 0 or lease.is_over", "if lease.is_over"),
    Mutant("the lease of a repeated grant is not renewed", "  W.zadd(K.active, whole(now + who.lease), id)\n", ""),
    Mutant(
        "a repeated grant stays on its way",
        "  offer.forget(worker, false)\n  if not jobs",
        "  meta.offer = ''\n  if not jobs",
    ),
    Mutant("another worker gets the grant", "if not worker or worker ~= who.worker then", "if not worker then"),
    Mutant(
        "a grant that was handed out is taken back",
        "if not (received or offer.is_unread(worker)) then return false end",
        "",
    ),
    Mutant(
        "a grant that was received is taken back",
        "or (received and received >= fence) then return false end",
        "then return false end",
    ),
    Mutant(
        "a grant that nobody received waits for its lease",
        "    elseif take_back_granted(grantee) then\n      horizon.call_again(now)\n    end",
        "    end",
        "offers: plain",
    ),
    Mutant(
        "a worker that may take a grant back is not told to ask again",
        "take_back_granted(grantee) then\n      horizon.call_again(now)",
        "take_back_granted(grantee) then\n      local _ = now",
        "offers: plain",
    ),
    Mutant(
        "a worker does not come back for a grant",
        "    if till > now then\n      horizon.call_again(till)",
        "    if till > now then\n      local _ = till",
    ),
    Mutant("a grant is taken back at once", "fence / 1000) + GRACE", "fence / 1000)"),
    Mutant("a worker leaves with its grant", "  withdraw_offer(A.workers[i], A.received)\n", ""),
    Mutant("a blocked worker keeps its grant", "if A.refuses then withdraw_offer(A.worker, A.refuses) end\n", ""),
    Mutant("jobs of an unseen answer stay", "if unseen then outcome.release(unseen) end\n", ""),
    Mutant(
        "jobs that have begun are taken back with an unseen answer",
        "l.fence == first + i - 1 and not l.begun then found",
        "l.fence == first + i - 1 then found",
    ),
    Mutant("an unseen call that was not carried out is taken back", "unseen and 1 or 0", "A.unseen and 1 or 0"),
    Mutant(
        "a worker that takes no more jobs offers a slot",
        "  take_back_granted(worker, received)\n  offer.withdraw(worker)",
        "  take_back_granted(worker, received)",
    ),
    Mutant(
        "a worker that takes no more jobs keeps its grant",
        "  take_back_granted(worker, received)\n  offer.withdraw(worker)",
        "  offer.withdraw(worker)",
    ),
    Mutant("a grant that nobody received stalls", "(l.prefetched or was_not_received(id, l))", "l.prefetched"),
    Mutant(
        "a grant that was handed out does not stall", "fence == l.fence and offer.is_unread(worker)", "fence == l.fence"
    ),
    Mutant(
        "a worker that gets its grant again keeps the marker that it popped",
        "  if redis.call('ZCARD', K.ready) > 0 then wake.up() end\n",
        "",
    ),
    Mutant("a grant is watched for ever", "  if worker and lease.is_over(id) then", "  if false then"),
]
