"""Defects of batches (which jobs start together, which groups wait for a full one) and of jobs that are taken back."""

from __future__ import annotations

from tests.model.mutant import Mutant

STEADY = "batches: steady"
MAY = "may(states[i], max, has_ttl, default, together)"
FITS = "prefetch.keeps_order(g) and not (g.rate or g.opened or g.holds)"

BATCHES = [
    # Which start together
    Mutant("jobs of a batch are prefetched", "together and t.stage or lease.FOLLOWS", "lease.FOLLOWS", STEADY),
    Mutant("no batches at all", "if row > 1 and filling.fits(g) then return", "if false then return", STEADY),
    Mutant("one too many in a batch", "math.min(#stored, n), record", "math.min(#stored, n + 1), record", STEADY),
    Mutant("job that ran before is not alone", MAY, MAY.replace("states[i]", "false"), STEADY),
    Mutant("batch behind a job that ran before", "and prefetch.may_lead(s,", "and prefetch.may_lead(false,", STEADY),
    Mutant("job that may run once is not alone", MAY, MAY.replace("max", "2"), STEADY),
    Mutant(
        "less urgent job in a batch",
        "while record.priority_of(stored[last]) ~= priority do last = last - 1 end",
        "",
        STEADY,
    ),
    Mutant("batch beside another job of its group", FITS, "not (g.rate or g.opened or g.holds)", STEADY),
    Mutant("batch that the rate of its group does not see", FITS, FITS.replace("g.rate or ", ""), STEADY),
    Mutant("the job that is tried has company", FITS, FITS.replace("g.opened or ", ""), "batches: breaker"),
    Mutant(
        "job of a batch starts inside its window",
        "while length > 1 and record.order_of(g.stored[length]) + rules.event_window > now",
        "while false",
        "batches: event time",
    ),
    Mutant(
        "two batches without a group", "if g.state == 'ready' and wait and length > 1 then", "if false then", STEADY
    ),
    Mutant(
        "group busy after a batch without one",
        "if g.concurrency > 1 then group.touch(g) end -- no group",
        "-- no",
        STEADY,
    ),
    # Events and stored state
    Mutant(
        "only the first of a batch is told",
        "      n_started = n_started + 1\n"
        "      t.started[n_started], t.gids[n_started], t.attempts[n_started] = id, g.id, 1\n",
        "",
        STEADY,
    ),
    Mutant("job of a batch expires", "      if has_ttl then W.zrem(K.expiring, id) end\n", "", STEADY),
    Mutant("batch that is sent again falls apart", "A.together and rows or false", "false", STEADY),
    # Waiting for a full batch
    Mutant(
        "no group waits for a full batch",
        "  local time = math.min(since, now) + wait\n",
        "  local time = math.min(since, now)\n",
        STEADY,
    ),
    Mutant("full batch waits", "+ put - dropped >= size then", "+ put - dropped > size then", STEADY),
    Mutant("batch waits for ever", "if time <= now or not prefetch.may_lead(", "if not prefetch.may_lead(", STEADY),
    Mutant(
        "job that may run once waits for company",
        "prefetch.may_lead(state.load({ id })[1], max, default) then return false",
        "prefetch.may_lead(state.load({ id })[1], 2, default) then return false",
        STEADY,
    ),
    Mutant(
        "job that may run once by default waits for company",
        "prefetch.may_lead(state.load({ id })[1], max, default) then return false",
        "prefetch.may_lead(state.load({ id })[1], max, 2) then return false",
        STEADY,
    ),
    Mutant(
        "job that has run before waits for company",
        "prefetch.may_lead(state.load({ id })[1], max, default) then return false",
        "prefetch.may_lead(false, max, default) then return false",
        STEADY,
    ),
    Mutant("jobs that were taken count as waiting", " + (g.popped or 0)", "", STEADY),
    Mutant("group without batches waits", "  if not filling.fits(g) then return false end\n", "", STEADY),
    Mutant(
        "nobody knows when a batch is to start",
        "  horizon.call_again(time)\n  return true\n",
        "  return true\n",
        STEADY,
    ),
    # What a supervisor takes back
    Mutant("leases of others are taken back", " and lease.worker(l) == A.worker then mine", " then mine", STEADY),
    Mutant("newer lease is taken back", "if l and l.fence == A.runs[2 * i] and lease", "if l and lease", STEADY),
    Mutant(
        "handlers of a dead worker keep their slots",
        "for _, fence in ipairs(stopping.of(A.worker)) do stopping.finish(fence) end\n",
        "",
        STEADY,
    ),
]
