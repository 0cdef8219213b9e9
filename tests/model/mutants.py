"""Classic defects of job queues as patches of our scripts. Each must be caught by the state machine.

A patch that no longer applies fails its test: rewrite it for the new text, so that the defect stays guarded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from groupmq import scripts
from groupmq.scripts import Script


class Mutant(NamedTuple):
    defect: str
    text: str
    instead: str


MUTANTS = [
    # Fencing
    Mutant("completion without a look at the token", "l.token == completed[3 * i - 1] and ", ""),
    Mutant("retry and failure without a look at the token", "l.token == o[3] and ", ""),
    Mutant("heartbeat without a look at the token", " and leases[i].token == A.held[2 * i]", ""),
    Mutant("two reports of one run count", " and not lease.is_over(id)", ""),
    Mutant(
        "a late report is stalled in the same call", "not over[ids[i]] and lease.decode(value)", "lease.decode(value)"
    ),
    Mutant("tokens follow a clock that steps back", "last < now_us and now_us or last + 1", "now_us"),
    Mutant("a resent request takes again", "if last then return", "if false then return"),
    Mutant("a request that was given up takes again", "last[1] >= request", "last[1] == request"),
    # Groups
    Mutant("group not re-armed after a run", "g.running - 1 end\n  group.touch(g)", "g.running - 1 end"),
    Mutant("limit ignored", "if g.running >= g.limit then", "if false then"),
    Mutant("limit raised and nobody told", "g.limit = conf.limit or meta.limit\ngroup.touch(g)", ""),
    Mutant("pause of a group ignored", "elseif g.paused then", "elseif false then"),
    Mutant("pause of the queue ignored", "if n <= 0 or meta.paused then", "if n <= 0 then"),
    Mutant(
        "slot not freed when a running job is removed",
        "finish.end_run(job.id, job.lease)",
        "lease.revoke(job.id)",
    ),
    Mutant("head not looked up after it was taken", "if member == g.head then g.head = find_head(g) end", ""),
    Mutant("work left and nobody woken", "or left or horizon.moved()", "or horizon.moved()"),
    Mutant("back-off begins and nobody told", "or left or horizon.moved()", "or left"),
    # Holds
    Mutant("hold ignored", "if hold and hold > now then", "if false then"),
    Mutant("hold one millisecond too long", "if hold and hold > now then", "if hold and hold >= now then"),
    Mutant("hold outlives its job", "if g.holds then group.release(g, record.id_of(member)) end", ""),
    Mutant("group of a held job goes on", "(how.yield or gid == '')", "true"),
    Mutant("yielding retry holds its group", "(how.yield or gid == '')", "gid == ''"),
    # Order
    Mutant("arrivals not counted", "meta.seq = meta.seq + 1", ""),
    Mutant(
        "retry goes to the tail",
        "local gid = record.group_of(rec)\n",
        "local gid = record.group_of(rec)\n"
        "rec = string.sub(rec, 1, 10) .. struct.pack('>I6', meta.next_seq()) .. string.sub(rec, 17)\n"
        "W.hset(K.jobs, id, rec)\n",
    ),
    Mutant(
        "order kept in a double", "string.sub(blob, at, at + order_size - 1)", "string.sub(blob, at, at + 6) .. '\\0'"
    ),
    Mutant("default order follows a clock that steps back", "if now > meta.order then", "if true then"),
    Mutant("priority ignored across groups", "return priority * PRIORITY_UNIT + seq", "return seq"),
    Mutant("new due time, old place", "record.moved_to(job.rec, time)", "job.rec"),
    # Time
    Mutant("delay truncated to seconds", "K.delayed, W.whole(time)", "K.delayed, W.whole(time - time % 1000)"),
    Mutant("due job left in delayed", "    W.zrem(K.delayed, ids[i])\n", ""),
    Mutant("due one millisecond late", "if time > now or #ripe == BATCH", "if time >= now or #ripe == BATCH"),
    Mutant("next due time not told", "horizon.note(tonumber(first[2]))", ""),
    # Attempts
    Mutant("stall uses no attempt", "s[STALLS] = l.stalls + 1", "s[STALLS], s[ATTEMPTS] = l.stalls + 1, l.attempts"),
    Mutant("stalls may be one too many", "s[STALLS] > policy.max_stalled", "s[STALLS] > policy.max_stalled + 1"),
    Mutant(
        "attempt forgotten when the job is taken again at once",
        "if saved[ids[i]] then raw[i] = cmsgpack.pack(saved[ids[i]]) end",
        "",
    ),
    Mutant(
        "hand-back uses an attempt",
        "else\n        finish.put_back(id, rec)",
        "else\n        state.save(id, s)\n        finish.put_back(id, rec)",
    ),
    Mutant("retry by hand keeps the attempts", "W.hdel(K.state, job.id)\n", ""),
    # Keeping
    Mutant("one finished job too many", "stored + #new - keep", "stored + #new - keep - 1"),
    Mutant("the newest finished job goes first", "'ZRANGE', K[kind], 0, math", "'ZREVRANGE', K[kind], 0, math"),
    Mutant("a bound lowered to 0 keeps the old ones", "if #new == 0 and not over[kind] then", "if #new == 0 then"),
    Mutant("clean spares what finished this millisecond", "math.max(now_us, meta.stamp) - A.age", "now_us - A.age"),
    Mutant("result outlives its job", "  W.hdel(K.results, id)\n", ""),
    Mutant("same id twice in one batch", "if existing[i] or (seen and seen[id]) then", "if existing[i] then"),
    Mutant("delayed job removed and still counted", "g.delayed = math.max(0, g.delayed - 1)\n      group.touch(g)", ""),
]


def loader(mutant: Mutant, load: Callable[[str], Script] = scripts.load) -> Callable[[str], Script]:
    """Loads every script with the defect in it. Raises LookupError if no script has the text."""
    if not any(mutant.text in load(name).text for name in scripts.names()):
        raise LookupError(f"no script contains {mutant.text!r}: the mutant {mutant.defect!r} needs a new patch")

    @cache
    def mutated(name: str) -> Script:
        text = load(name).text.replace(mutant.text, mutant.instead)
        sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        return Script(name, text, sha, load(name).origins)

    return mutated
