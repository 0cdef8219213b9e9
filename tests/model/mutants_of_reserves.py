"""Defects of reserves: which jobs are prefetched, and what happens when another worker is idle."""

from __future__ import annotations

from tests.model.mutant import Mutant

STEADY = "rows: steady"
GROUP = "if not prefetch.group_allows(g) then return false end\n    local id"
ALLOWS = "prefetch.job_allows(states[i], max, has_ttl, default)"

RESERVES = [
    # Which jobs
    Mutant("job with a ttl reserved", ALLOWS, ALLOWS.replace("has_ttl", "false"), STEADY),
    Mutant("job that may run once reserved", ALLOWS, ALLOWS.replace("max", "2"), STEADY),
    Mutant("job that may run once by default reserved", ALLOWS, ALLOWS.replace("default", "2"), STEADY),
    Mutant("job that ran before reserved", ALLOWS, ALLOWS.replace("states[i]", "false"), STEADY),
    Mutant(
        "one that may not be reserved is passed over",
        "      passed_over = true\n      break -- it is next",
        "      passed_over = true -- it is next",
        STEADY,
    ),
    Mutant(
        "reserve where two may run at once", GROUP, GROUP.replace("not prefetch.group_allows(g)", "g.gated"), STEADY
    ),
    Mutant(
        "reserve where a group has to wait", GROUP, GROUP.replace("group_allows", "keeps_order"), "rows: group rate"
    ),
    Mutant(
        "reserve that the rate of the queue counts too early",
        "meta.paused or not prefetch.heads_in_queue()",
        "meta.paused",
        "rows: queue rate",
    ),
    Mutant("reserve of a queue that is paused", "if not who.fill or meta.paused or", "if not who.fill or", STEADY),
    Mutant(
        "reserve with round robin",
        "local fill = prefetches and",
        "local fill = who.policy.max_stalled ~= 0 and",
        "rows: round robin",
    ),
    Mutant(
        "reserve where no job may stall",
        "local fill = prefetches and",
        "local fill = prefetch.in_queue() and",
        STEADY,
    ),
    Mutant("one too many reserved", "(taken < n or count < fill)", "(taken < n or count <= fill)", STEADY),
    Mutant(
        "row of a reserve too long",
        "most - count - other_heads or fill - count",
        "most - count - other_heads or row",
        STEADY,
    ),
    Mutant(
        "reserve while jobs are due that have not joined their groups",
        "n, A.fill = budget.share(n), nil",
        "n = budget.share(n)",
        "backlog: steady",
    ),
    # Leases and events
    Mutant("reserved job known to run", "r > n and lease.RESERVED or stage", "stage", STEADY),
    Mutant(
        "reserved job active at once",
        "      if r <= n then\n        n_started",
        "      if true then\n        n_started",
        STEADY,
    ),
    Mutant(
        "reserved job told again as one of a row",
        "(begins or l.follows) and l.gid == before",
        "(begins or l.prefetched) and l.gid == before",
        STEADY,
    ),
    Mutant(
        "run of a reserved job measured from when it was taken",
        "= stage == lease.RESERVED or (same",
        "= (same",
        STEADY,
    ),
    Mutant(
        "start of a reserved job that completes not told",
        "any_prefetched = is_prefetched and 1 or 0,",
        "any_prefetched = stage == 2 and 1 or 0,",
        STEADY,
    ),
    # Workers that are idle
    Mutant("idle workers not woken", "left or #groups > n or unfilled, short", "left or unfilled, short", STEADY),
    Mutant("holder of a reserve not noted", "  if #groups > n then reserve.took(who.worker) end\n", "", STEADY),
    Mutant("nobody says that there are holders", "meta.held = true", "", STEADY),
    Mutant("idle worker does not ask", "if short and not left and not limited_until then", "if false then", STEADY),
    Mutant(
        "worker asks though it got what it wanted",
        "if short and not left and not limited_until then",
        "if true then",
        STEADY,
    ),
    Mutant("idle worker asks itself", "if old or found[i] ~= worker then", "if true then", STEADY),
    Mutant("used up reserve asked for", "if not old then\n        mail", "if true then\n        mail", STEADY),
    Mutant("holder asked twice", "      W.zrem(K.reservers, found[i])\n      left", "      left", STEADY),
    Mutant("holder not told", "        mail.send(found[i])\n        call.asked", "        call.asked", STEADY),
    Mutant("reserves just after some were asked for", "if is_asked_for() or", "if", STEADY),
    Mutant(
        "that it was asked for not remembered",
        "function reserve.note() meta.asked = now end",
        "function reserve.note() end",
        STEADY,
    ),
    Mutant(
        "reserve while a worker is idle",
        "is_asked_for() or another_is_idle(who.worker) then",
        "is_asked_for() then",
        STEADY,
    ),
    Mutant(
        "worker that has found something is idle",
        "if last_idle() == worker then W.hset",
        "if false then W.hset",
        STEADY,
    ),
    Mutant(
        "worker that works ends the rest of another",
        "if last_idle() == worker then W.hset",
        "if true then W.hset",
        STEADY,
    ),
    Mutant("reserve not wanted back", "is_asked_for() and meta.stamp or 0", "0", STEADY),
    Mutant(
        "reserve wanted back for ever",
        "is_asked_for() and meta.stamp or 0",
        "meta.asked and meta.stamp or 0",
        STEADY,
    ),
    Mutant("holder that left is still asked", "  W.zrem(K.reservers, A.workers[i])\n", "", STEADY),
]
