"""Defects of rows: which jobs are taken together, their leases, how they end, and their events."""

from __future__ import annotations

from tests.model.mutant import Mutant

STEADY = "rows: steady"
MAY = "may(states[i], max, has_ttl, default, together)"

ROWS = [
    # Who follows
    Mutant("one too many follows", "math.min(#stored, n), record", "math.min(#stored, n + 1), record", STEADY),
    Mutant(
        "less urgent job follows",
        "while record.priority_of(stored[last]) ~= priority do last = last - 1 end",
        "",
        STEADY,
    ),
    Mutant("job with a ttl follows", MAY, MAY.replace("has_ttl", "false"), STEADY),
    Mutant("job that may run once follows", MAY, MAY.replace("max", "2"), STEADY),
    Mutant("job that may run once by default follows", MAY, MAY.replace("default", "2"), STEADY),
    Mutant("job that ran before follows", MAY, MAY.replace("states[i]", "false"), STEADY),
    Mutant("job that ran before is followed", "and prefetch.may_lead(s,", "and prefetch.may_lead(false,", STEADY),
    Mutant(
        "job that may run once is followed",
        "and prefetch.may_lead(s, max, default)",
        "and prefetch.may_lead(s, 2, default)",
        STEADY,
    ),
    Mutant(
        "one that may not follow is passed over",
        f"if not {MAY} then break end\n    if large and not bodies.bring(id, rec, m + 1) then break end\n"
        "    m = m + 1\n    taken[m], found[m], leases[m] = id, rec, value\n",
        f"if {MAY} then\n    m = m + 1\n    taken[m], found[m], leases[m] = id, rec, value\nend\n",
        STEADY,
    ),
    Mutant("rows where no job may stall", "row = (prefetches or who", "row = (prefetch.in_queue() or who", STEADY),
    Mutant("rows where two may run at once", "row > 1 and prefetch.row_allows(g)", "row > 1 and not g.gated", STEADY),
    Mutant(
        "rows where a group has to wait", "and prefetch.row_allows(g)", "and g.concurrency == 1", "rows: event time"
    ),
    Mutant("rows with round robin", "(rules.round_robin or rules.ageing", "(rules.ageing", "rows: round robin"),
    Mutant("rows where waiting counts", "rules.round_robin or rules.ageing", "rules.round_robin", "rows: ageing"),
    Mutant(
        "rows that the rate of the queue does not see",
        "taken < n and most - count - other_heads or",
        "taken < n and row or",
        "rows: queue rate",
    ),
    Mutant("row before the head of another group", "- count - other_heads or", "- count or", "rows: queue rate"),
    Mutant("rows where groups have a rate", "and prefetch.row_allows(g)", "and g.concurrency == 1", "rows: group rate"),
    Mutant("rows where one worker has the turn", "rules.ageing or rules.exclusive", "rules.ageing", "rows: exclusive"),
    Mutant(
        "row read past what this call has changed",
        "if g.stored or g.added or g.removed or g.holds then return members",
        "if g.holds then return members",
        STEADY,
    ),
    # What they hold
    Mutant(
        "followers stay in their group",
        "g.popped + n, g.pos + n",
        "g.popped, g.pos + n",
        STEADY,
    ),
    Mutant("head not looked up after it followed", "  g.head = g.stored[g.pos] or false\n", "", STEADY),
    Mutant(
        "followers not counted as running", "g.running, g.popped, g.pos = g.running + n,", "g.popped, g.pos =", STEADY
    ),
    Mutant("one too many leaves its group with a row", "ranks(n) return -n, -1", "ranks(n) return -n - 1, -1", STEADY),
    Mutant("row removed from the wrong end", "ranks(n) return -n, -1", "ranks(n) return 0, n - 1", STEADY),
    Mutant("row not removed", "if g.popped then W.zrem_ranks(key, waiting.ranks(g.popped)) end", "", STEADY),
    Mutant("rows not told to the worker", "n_rows < m and rows or {}", "{}", STEADY),
    Mutant("rows told where there are none", "n_rows < m and rows or {}", "rows", STEADY),
    Mutant("rows not told again", "if (begins or l.follows) and l.gid == before then", "if false then", STEADY),
    Mutant(
        "row told again in parts",
        "      before, taken_at = l.gid, l.started\n    else\n",
        "      before, taken_at = l.gid, l.started\n    else\n      before = nil\n",
        STEADY,
    ),
    # How they end
    Mutant(
        "expired followers have stalled",
        "if l and rec and (l.prefetched or was_not_received(id, l)) then",
        "if false then",
        STEADY,
    ),
    Mutant(
        "slot not freed when a follower expires",
        "function release_unstarted(id, l, rec)\n  end_run(id, l)",
        "function release_unstarted(id, l, rec)\n  lease_changes.revoke(id)",
        STEADY,
    ),
    Mutant(
        "expired follower lost",
        "function release_unstarted(id, l, rec)\n  end_run(id, l)\n  release_job(id, rec)",
        "function release_unstarted(id, l)\n  end_run(id, l)",
        STEADY,
    ),
    Mutant("slots of completed followers not freed", "free(g, ended)\n  if meta", "free(g, 1)\n  if meta", STEADY),
    Mutant(
        "slots of a completed row not freed", "if g then group.free(g, ended)", "if g then group.free(g, 1)", STEADY
    ),
    Mutant("runs of completed followers not measured", "if behind > 0 then measure.run(0, behind) end", "", STEADY),
    Mutant("one that has begun is still ahead", "lease.BEGUN)\n      W.hset", "lease.FOLLOWS)\n      W.hset", STEADY),
    Mutant(
        "one that has begun outlives its end",
        "if not lease.is_over(id) then\n      local fixed",
        "if true then\n      local fixed",
        STEADY,
    ),
    Mutant(
        "that one has begun counts as a lost lease",
        "      if o[KIND] ~= BEGIN then\n        measure.count('lease_lost', 1)",
        "      measure.count('lease_lost', 1)\n      if o[KIND] ~= BEGIN then",
        STEADY,
    ),
    # What operators do to prefetched jobs
    Mutant(
        "prefetched job acted on before its worker has answered",
        "    interrupts.recall(job.id, l)\n    return true\n",
        "    return false\n",
        STEADY,
    ),
    Mutant(
        "prefetched job never given back by its lease",
        "if deadline and deadline > now then\n    interrupts",
        "if deadline then\n    interrupts",
        STEADY,
    ),
    Mutant("worker not asked for a prefetched job", "    interrupts.recall(job.id, l)\n", "", STEADY),
    Mutant("recall outlives the answer that its job has begun", "  interrupts.begun(id)\n", "", STEADY),
    Mutant(
        "recall told as a cancel",
        "function interrupts.recall(id, l) put(RECALL",
        "function interrupts.recall(id, l) put(CANCEL",
        STEADY,
    ),
    Mutant(
        "prefetched jobs of other groups recalled",
        "if not A.group or lease.group_of(page[2][i + 1]) == A.group then ids",
        "if true then ids",
        STEADY,
    ),
    # Jobs that were granted for a free slot and may not have begun
    Mutant(
        "granted job acted on before its worker has answered",
        "(l and job.rec) or l.begun then return false",
        "(l and job.rec) or not l.prefetched then return false",
        STEADY,
    ),
    Mutant("granted job counts as begun", "who.confirms and lease.GRANTED or", "false and lease.GRANTED or", STEADY),
    Mutant(
        "granted job whose lease is over given back",
        "  if l.prefetched then\n    release_unst",
        "  do release_unst",
        STEADY,
    ),
    Mutant(
        "begin of a granted job not recorded", "    elseif not l.begun then\n", "    elseif l.prefetched then\n", STEADY
    ),
    Mutant(
        "renewal does not say that a job has begun",
        "if not (l.begun or l.prefetched) then begin_job(",
        "if false then begin_job(",
        STEADY,
    ),
    Mutant("recall told after the renewal that settles it", "(kind == RECALL and begun[id])", "false", STEADY),
    Mutant(
        "begin of a follower told by its renewal",
        "if not (l.begun or l.prefetched) then",
        "if not l.begun then",
        STEADY,
    ),
    Mutant("job that was asked for taken again", "  elseif asked and not (", "  elseif false and not (", STEADY),
    Mutant("group rests after a pause", " and not (meta.paused or group.get(l.gid).paused) then", " then", STEADY),
    Mutant(
        "start of a follower that is given back while it runs not told",
        "if kind ~= RELEASE or o[RELEASED.BEGUN] then announce",
        "if kind ~= RELEASE then announce",
        STEADY,
    ),
    # Events
    Mutant("followers are ahead of nobody", "together and t.stage or lease.FOLLOWS)", "t.stage)", STEADY),
    Mutant(
        "followers active at once",
        "      rows[n_rows] = m - head + 1\n",
        "      rows[n_rows] = m - head + 1\n"
        "for i = head + 1, m do\n"
        "started[#started + 1], gids[#gids + 1], attempts[#attempts + 1] = taken[i], g.id, 1 end\n",
        STEADY,
    ),
    Mutant(
        "start of a follower that completes not told",
        "if prefetched then columns[6]",
        "if false then columns[6]",
        STEADY,
    ),
    Mutant(
        "start of those beside a follower told again",
        "columns[7] = prefetched, worker",
        "columns[7] = 1, worker",
        STEADY,
    ),
    Mutant(
        "worker of a follower not told",
        "columns[7] = prefetched, worker",
        "columns[7] = prefetched, ''",
        STEADY,
    ),
    Mutant(
        "start of a follower that is tried again not told",
        "if kind ~= RELEASE or o[RELEASED.BEGUN] then announce_begin(id, l) end",
        "",
        STEADY,
    ),
    Mutant(
        "follower given back is told as active",
        "if kind ~= RELEASE or o[RELEASED.BEGUN] then announce_begin(id, l) end",
        "announce_begin(id, l)",
        STEADY,
    ),
    Mutant("start told that was told before", "l.prefetched, l.begun = false, true", "l.begun = true", STEADY),
    Mutant(
        "that one has begun not told",
        "  announce_begin(id, l)\n  lease_changes.begin_run(id, l)\n",
        "  lease_changes.begin_run(id, l)\n",
        STEADY,
    ),
]
