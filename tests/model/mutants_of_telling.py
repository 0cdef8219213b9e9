"""Defects of what workers, handlers, listeners and operators are told: cancelled runs, notes, events, measures."""

from __future__ import annotations

from tests.model.mutant import Mutant

TELLING = [
    # Cancelling
    Mutant("cancelled run is tried again", "elseif cancelled then", "elseif false then", "steady"),
    Mutant(
        "stalled run is tried again though it was cancelled",
        "if cancelled then\n    why",
        "if false then\n    why",
        "steady",
    ),
    Mutant("cancel outlives the run", "do W.hdel(K.cancels, id) end", "do local _ = id end", "steady"),
    Mutant(
        "cancel ends the lease at once",
        "W.hset(K.cancels, job.id",
        "find.detach(job) W.hset(K.cancels, job.id",
        "steady",
    ),
    Mutant(
        "cancelled job stays in its group",
        "not gone[job.id] then\n    gone[job.id] = true\n    find.detach(job)\n",
        "not gone[job.id] then\n    gone[job.id] = true\n",
        "steady",
    ),
    Mutant("delayed job cannot be cancelled", "or job.state == 'delayed') and not gone", ") and not gone", "steady"),
    Mutant("worker of a cancelled run not told", "mail.send(lease.worker(job.lease))", "", "steady"),
    Mutant("all workers told of a cancelled run", "lease.worker(l) == worker and ", "", "steady"),
    Mutant("running jobs of a group not cancelled", "lease.decode(leases[i + 1]).gid == gid", "false", "steady"),
    Mutant(
        "more of a group cancelled than asked for",
        "'ZRANGE', K.group .. gid, 0, limit - 1",
        "'ZRANGE', K.group .. gid, 0, -1",
        "steady",
    ),
    # Notes
    Mutant("note without a look at the token", "l and l.token == token and 1 or 0", "l and 1 or 0", "steady"),
    Mutant("log without a bound", "if #log > MOST_LINES then", "if false then", "steady"),
    Mutant("full log stays as it is", "table.remove(log, 1)", "table.remove(log)", "steady"),
    Mutant("log outlives its job", "    W.hdel(K.logs, id)\n", "", "steady"),
    Mutant("log outlives its completed job", "    W.all('HDEL', K.logs, ids)\n", "", "steady"),
    Mutant("notes not noted", "if not meta.notes then", "if false then", "steady"),
    # Events
    Mutant("events not counted", "W.hset(K.meta, 'logged', W.whole(meta.logged + 1))", ""),
    Mutant("only the last event of a kind told", "if not columns then", "if true then"),
    Mutant("events of a silent queue", "not rules.silent", "true", "silent"),
    Mutant("retry not told", "events.note('retrying', id, gid, s[ATTEMPTS], how.delay, how.reason)", ""),
    Mutant("removal not told", "events.note('removed', job.id, record.group_of(job.rec))", ""),
    Mutant("told which attempt was before", "s and s[ATTEMPTS] + 1 or 1", "s and s[ATTEMPTS] or 1"),
    Mutant("last stall told as any other", "s[ATTEMPTS], why ~= nil)", "s[ATTEMPTS], false)"),
    Mutant("results of two jobs told as one", "blob[#blob + 1] = result", "blob[1] = result"),
    Mutant("completed job told to have run once", "column(#ids, attempts, 1)", "1"),
    Mutant("attempts of one told for all", "whole[i] = values[i] or usual", "whole[i] = values[#values] or usual"),
    Mutant("results of completed jobs not told", "column(#ids, sizes, -1)", "-1"),
    Mutant(
        "completed jobs told to be of one group",
        "gids[i], aheads[i], any_ahead = gid,",
        "gids[i], aheads[i], any_ahead = ids[1] and gids[1] or gid,",
    ),
    Mutant("drained though another group lives", " and redis.call('HLEN', K.groups) == gone", ""),
    Mutant("pause told again", "A.paused ~= nil and A.paused ~= (conf.paused or false)", "A.paused ~= nil"),
    # Measures
    Mutant("waiting measured at every start", "if not s then measure.wait(", "if true then measure.wait("),
    Mutant("runs that are tried again not measured", "if o[1] == FAIL or o[1] == RETRY then", "if o[1] == FAIL then"),
    Mutant("delay measured as waiting", "flags % 2 == 1 and created or number(high, low)", "created"),
    Mutant("lost lease not counted", "W.count('lease_lost', #refused)", ""),
    Mutant("minutes begin anew with every call", "if raw and #raw == LENGTH then", "if false then"),
    Mutant(
        "a power of two in the bucket below",
        "return (exponent < LARGEST",
        "return (ms == 2 ^ (exponent - 1) and exponent - 1 or exponent < LARGEST",
    ),
]
