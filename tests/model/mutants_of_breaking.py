"""Defects of breakers and of snoozed jobs."""

from __future__ import annotations

from tests.model.mutant import Mutant

OPEN, ROWS = "breaker", "rows: breaker"
COUNTS = "if not cancelled then breaker_changes.failed(group.get(l.gid)) end"

BREAKING = [
    # When it opens
    Mutant("failures not counted", "g.failures = (g.failures or 0) + 1", "g.failures = 1", OPEN),
    Mutant("breaker opens one failure late", "g.failures >= rule[FAILURES]", "g.failures > rule[FAILURES]", OPEN),
    Mutant("open breaker ignored", "if g.opened and g.opened > time then time = g.opened end", "", OPEN),
    Mutant("cancelled run counts as a failure", "if not cancelled then breaker_changes", "do breaker_changes", OPEN),
    Mutant("stall is no failure", f"measure.count('stalled', 1)\n  {COUNTS}", "measure.count('stalled', 1)", OPEN),
    Mutant(
        "attempt that is retried is no failure",
        f"    {COUNTS}\n  end\n  if kind",
        f"    if kind ~= RETRY then {COUNTS} end\n  end\n  if kind",
        OPEN,
    ),
    Mutant("jobs without a group have a breaker", "if not rule or g.id == '' then", "if not rule then", OPEN),
    Mutant(
        "failures of a group forgotten with its jobs",
        "    if failing[i] then read_breaker(g, failing[i]) end\n",
        "    if failing[i] and values[i] then read_breaker(g, failing[i]) end\n",
        OPEN,
    ),
    # The probe
    Mutant("two jobs are tried at once", " or (g.opened and g.running > 0)", "", OPEN),
    Mutant(
        "jobs are prefetched behind the one that is tried",
        "prefetch.row_allows(g) then\n    return members.pop_row",
        "g.concurrency == 1 then\n    return members.pop_row",
        ROWS,
    ),
    Mutant(
        "the job that is tried is reserved",
        "prefetch.group_allows(g) then return false end\n    local",
        "prefetch.keeps_order(g) then return false end\n    local",
        ROWS,
    ),
    Mutant(
        "breaker stays open after a success", "      if g.failures then breaker_changes.succeeded(g) end\n", "", OPEN
    ),
    Mutant(
        "group does not rest again after another failure",
        "g.failures >= rule[FAILURES]",
        "g.failures == rule[FAILURES]",
        OPEN,
    ),
    # Which are open
    Mutant("open breaker not counted", "if not g.opened then W.zadd(K.opened, whole(now), g.id) end", "", OPEN),
    Mutant(
        "breaker that opens again has not been open before",
        "if not g.opened then W.zadd(K.opened, whole(now), g.id) end",
        "W.zadd(K.opened, whole(now), g.id)",
        OPEN,
    ),
    Mutant(
        "group is counted before its breaker opens",
        "  if g.failures >= rule[FAILURES] then\n    if not g.opened then W.zadd(K.opened, whole(now), g.id) end",
        "  if not g.opened then W.zadd(K.opened, whole(now), g.id) end\n  if g.failures >= rule[FAILURES] then",
        OPEN,
    ),
    Mutant(
        "closed breaker still counted", "  if g.opened or not rules.breaker then W.zrem(K.opened, g.id) end\n", "", OPEN
    ),
    Mutant(
        "open breakers shown since the last of them",
        "local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')",
        "local first = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')",
        OPEN,
    ),
    # What stays
    Mutant("failures never forgotten", ", breaker_changes.sweep(BATCH)", ", 0", OPEN),
    Mutant("nobody says that failures are counted", "  meta.breakers = true\n  group", "  group", OPEN),
    Mutant(
        "the last breaker is not the last",
        "if redis.call('ZCARD', K.breaking) <= mine.dropped then",
        "if true then",
        OPEN,
    ),
    Mutant("a group that rests is not held", "if g.opened == g.due then return 'breaker' end", "", OPEN),
    # Snoozed jobs
    Mutant(
        "snoozed run uses an attempt",
        "    history.add(id, s, 'snoozed', l.attempts == 0)\n",
        "    history.add(id, s, 'snoozed', l.attempts == 0)\n    state_changes.save(id, s)\n",
    ),
    Mutant(
        "snoozed job runs again at once",
        "if delay > 0 then group.hold(group.get(gid), id, now",
        "if false then print(now",
    ),
    Mutant("snoozed job shown as failed", "id, now + delay, true)", "id, now + delay)"),
    Mutant("group goes on without its snoozed job", "delay > 0 and (yields or gid == '')", "delay > 0"),
    Mutant(
        "group waits for a snoozed job that yields", "delay > 0 and (yields or gid == '')", "delay > 0 and gid == ''"
    ),
    Mutant("moved job no longer snoozed", "group.hold(g, job.id, time, snoozed)", "group.hold(g, job.id, time)"),
]
