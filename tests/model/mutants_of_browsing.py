"""Defects of pages, positions and attempts, and of retrying many jobs."""

from __future__ import annotations

from tests.model.mutant import Mutant

BROWSING = [
    Mutant("attempt that was retried not kept", "history.add(id, s, 'retried')", "", "steady"),
    Mutant("attempt that stalled not kept", "history.add(id, s, 'stalled')", "", "steady"),
    Mutant(
        "prefetched job that is given back counts as a run",
        "  elseif o[RELEASED.BEGUN] then\n",
        "  elseif o[RELEASED.BEGUN] or not asked then\n",
        "rows: steady",
    ),
    Mutant("attempts outlive their job", "if meta.attempts then state_changes.forget_history(id) end", "", "steady"),
    Mutant("attempts of a job that is not kept outlive it", "if meta.loose then", "if false then", "steady"),
    Mutant("last run forgotten when an operator retries", "history.keep_last(job.id, s)", "", "steady"),
    Mutant("another failure retried than the one meant", "(not stamp or whole(job.score) == stamp)", "true", "steady"),
    Mutant(
        "class of an error not stored",
        "s[STACK], s[ERROR] = now, why.reason, stack, why.error or ''",
        "s[STACK] = now, why.reason, stack",
        "steady",
    ),
    Mutant(
        "position counted from the end of the group",
        "redis.call('ZREVRANK', K.group .. g.id, member)",
        "redis.call('ZRANK', K.group .. g.id, member)",
        "steady",
    ),
    Mutant(
        "page begins with the last job of the one before",
        "A.newest and 'ZREVRANK' or 'ZRANK', key, id) + 1",
        "A.newest and 'ZREVRANK' or 'ZRANK', key, id)",
        "steady",
    ),
    Mutant(
        "page of waiting jobs skips the rest of a group",
        "if #found == left then return members, groups, '' end",
        "if #members == A.limit then break end",
        "steady",
    ),
    Mutant(
        "group held by a running job is not said to be", "if g.state == 'busy' then return 'running' end", "", "steady"
    ),
]
