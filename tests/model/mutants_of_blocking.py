"""Defects of blocked groups: which jobs block, which jobs start nevertheless, what ends a block, and what is left."""

from __future__ import annotations

from tests.model.mutant import Mutant

BLOCKING = [
    # Which jobs block
    Mutant("job that failed for good does not block", "not why.cancelled and record.holds(rec)", "false", "hold"),
    Mutant("cancelled job blocks its group", "gid ~= '' and not why.cancelled and", "gid ~= '' and", "hold"),
    Mutant("job without a group blocks", "gid ~= '' and not why.cancelled and", "not why.cancelled and", "hold"),
    Mutant(
        "job that says it lets its group go on blocks it",
        "(rules.hold ~= nil and not has(flags, CONTINUE))",
        "rules.hold ~= nil",
        "hold",
    ),
    Mutant("job that says it blocks its group does not", "return has(flags, HOLD) or", "return", "some hold"),
    # What a block stops
    Mutant("blocked group goes on", "elseif g.blocked then\n    return 'blocked'", "", "hold"),
    Mutant(
        "blocked group goes on with the next call",
        "if since[i] then block(g, tonumber(since[i])) end",
        "",
        "hold",
    ),
    Mutant(
        "calls do not look for blocked groups", "  meta.blocks = true\n  group.touch(g)", "  group.touch(g)", "hold"
    ),
    Mutant(
        "job failed by hand leaves prefetched jobs behind it",
        "if g.blocked and g.running > 0 then out = g.id end",
        "",
        "hold",
    ),
    Mutant(
        "job failed by hand calls back jobs of a group that goes on",
        "if g.blocked and g.running > 0 then out",
        "if g.running > 0 then out",
        "some hold",
    ),
    # What ends it
    Mutant(
        "one of two resolved jobs is enough", "if g.blockers == 0 and g.blocked then b", "if g.blocked then b", "hold"
    ),
    Mutant(
        "group blocked for ever",
        "if g.blockers == 0 and g.blocked then blocking_changes.unblock(g, id) end",
        "",
        "hold",
    ),
    Mutant(
        "group not re-armed when it is unblocked",
        "events.publish('unblocked', id, g.id)\n  group.touch(g)",
        "events.publish('unblocked', id, g.id)",
        "hold",
    ),
    Mutant(
        "removed or redriven job blocks on",
        "    if job.state == 'failed' then blocking_changes.resolve(job.id) end\n",
        "",
        "hold",
    ),
    Mutant("job resolved twice in one call", "not changes().resolved[id] and redis", "redis", "hold"),
    Mutant("resolved job is still listed", "  W.zrem(K.blocking, blocking.member(gid, since, id))\n", "", "hold"),
    Mutant(
        "the last block is not the last",
        "redis.call('ZCARD', K.blocked) == mine.unblocked",
        "redis.call('ZCARD', K.blocked) >= mine.unblocked",
        "hold",
    ),
    Mutant(
        "since when the newest block exists is told",
        "redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')",
        "redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')",
        "hold",
    ),
    # What stays
    Mutant(
        "blocking job not kept", "local mine = kind == 'failed' and forgettable(new) or new", "local mine = new", "hold"
    ),
    Mutant(
        "retention and clean forget a blocking job",
        "found[i] = found[i] and not resolved[ids[i]]",
        "found[i] = false",
        "hold",
    ),
    Mutant(
        "blocking jobs count among those that are kept",
        "stored = stored - blocking_changes.total() + #new - #mine",
        "stored = stored + 0",
        "hold",
    ),
    Mutant("skipped job kept for ever", "  meta.spared = math.min(meta.spared, stamp - 1)\n", "", "hold"),
    Mutant(
        "skipped job outlives a process that keeps none",
        "    if kind == 'failed' and call.released then retention.drop(kind, call.released) end\n",
        "",
        "hold",
    ),
    Mutant(
        "skipping does not forget the excess", "if call.failed or call.released then", "if call.failed then", "hold"
    ),
    # Answers and events
    Mutant("block told for each job", "if not g.blocked then\n    g.blocked, mine", "do\n    g.blocked, mine", "hold"),
    Mutant("end of a block not told", "  events.publish('unblocked', id, g.id)\n", "", "hold"),
    Mutant(
        "blocked group shown as idle or busy",
        "  if g.blocked then return 'blocked' end\n  if state",
        "  if state",
        "hold",
    ),
    Mutant("blocked group is not held", "if g.blocked then return 'blocked' end\n  if g.state", "if g.state", "hold"),
]
