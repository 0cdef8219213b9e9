"""An independent look at a queue's keyspace: what the keys say, and every way in which they disagree.

Written against `lua/lib/keys.lua` and `record.lua`, not against the scripts: it shares no decision with them.
"""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import msgspec
import redis

from groupmq.core import record
from groupmq.core.record import Record
from groupmq.protocol.keys import FIXED, Keys
from tests.support.dump import Dump
from tests.support.meta import decode as decode_meta
from tests.support.meta import measures as decode_measures

PRIORITY_UNIT = 2**43


@dataclass
class StoredGroup:
    running: int
    delayed: int
    head: bytes
    holds: dict[str, int]
    rest: int = 0
    since: int = 0
    till: int = 0
    snoozed: frozenset[str] = frozenset()


@dataclass
class Keyspace:
    """Everything stored of one queue, decoded."""

    now: int
    meta: dict[str, str]
    jobs: dict[str, Record]
    places: dict[str, bytes]
    state: dict[str, list[Any]]
    history: dict[str, list[list[Any]]]
    """Runs that ended and did not complete, by job: the fields of `lua/lib/history.lua`."""
    results: dict[str, bytes]
    waiting: dict[str, list[bytes]]
    groups: dict[str, StoredGroup]
    conf: dict[str, dict[str, Any]]
    blocked: dict[str, float]
    """Groups that a failed job blocks, and since when."""
    blockers: dict[str, tuple[str, int]]
    """Jobs that block their group: the group, and since when."""
    blocking: list[tuple[str, str, int]]
    """The same as the index by group says: group, job, since when."""
    breakers: dict[str, tuple[int, int]]
    """Groups whose attempts fail: how often in a row, and until when an open breaker rests."""
    breaking: dict[str, float]
    """When that is forgotten."""
    opened_since: dict[str, float]
    """Those of them whose breaker is open, and since when."""
    ready: dict[str, float]
    parked: dict[str, float]
    delayed: dict[str, float]
    active: dict[str, float]
    leases: dict[str, tuple[int, str]]
    completed: dict[str, float]
    failed: dict[str, float]
    expiring: dict[str, float]
    rules: dict[str, Any]
    turn: list[Any] | None
    lease_workers: dict[str, str]
    holders: dict[str, float]
    """Workers that have taken a reserve, and when."""
    ahead: set[str]
    """Jobs that were taken behind another or in a reserve, and are not known to have started."""
    starts: list[int]
    group_starts: dict[str, list[int]]
    rated: dict[str, float]
    dedupe: dict[bytes, bytes]
    deduped: dict[bytes, float]
    unique: dict[str, tuple[int, int, int]]
    """Ids that stay taken: for how many ms, until when (0 = the job has not ended), when the job was made."""
    uniques: dict[str, float]
    repeats: dict[str, dict[str, Any]]
    ticks: dict[str, float]
    hails: list[str]
    mails: list[str]
    workers: list[str]
    progress: dict[str, bytes]
    logs: dict[str, list[Any]]
    cancels: dict[str, int]
    recalls: dict[str, int]
    """Prefetched jobs that their workers are asked for, and the fences of their leases."""
    stopping: dict[int, tuple[float, str, str]]
    """Runs whose job an operator has ended: the end of the lease, the group, the worker."""
    entries: dict[str, int]
    marks: list[str]
    minutes: dict[int, list[int]]
    spreads: dict[int, dict[int, int]]
    """Of each minute: place -> how many; waits from 0, runs from 25, dropped failures at 50."""
    wait: list[int]
    run: list[int]
    strangers: list[str] = field(default_factory=list)

    def limit(self, group_id: str) -> float:
        if group_id == "":
            return float("inf")
        return float(self.conf.get(group_id, {}).get("limit") or int(self.meta.get("limit", "1")))

    def rate(self, group_id: str) -> list[int] | None:
        """Starts and milliseconds, if the group has a rate limit."""
        own = self.conf.get(group_id, {}).get("rate") or self.rules.get("group_rate")
        return own if group_id else None

    def opened(self, group_id: str) -> int:
        """Until when an open breaker makes the group rest; 0 = it has none."""
        return self.breakers.get(group_id, (0, 0))[1] if "breaker" in self.rules else 0

    def waiting_ids(self, group_id: str) -> list[str]:
        return [member[16:].decode() for member in self.waiting.get(group_id, [])]


def read(dump: Dump, prefix: str, queue: str, now: int | None = None) -> Keyspace:
    """All keys of a queue."""
    keys = Keys(prefix, queue)
    base = keys.base.encode()

    def hash_of(name: str) -> dict[str, bytes]:
        return {f.decode(): v for f, v in dump.fields(keys.fixed(name)).items()}

    def zset_of(name: str) -> dict[str, float]:
        return {m.decode(): s for m, s in dump.scores(keys.fixed(name)).items()}

    raw_jobs, raw_leases, meta, series = hash_of("jobs"), hash_of("leases"), hash_of("meta"), hash_of("series")
    raw_states = dump.fields(keys.fixed("state"))
    rules: dict[str, Any] = msgspec.msgpack.decode(meta.pop("rules", b"\x80"))
    turn: list[Any] | None = msgspec.msgpack.decode(meta.pop("turn")) if "turn" in meta else None
    measured = _measured(meta, series)
    waiting: dict[str, list[bytes]] = {}
    group_starts: dict[str, list[int]] = {}
    hails: list[str] = []
    mails: list[str] = []
    strangers: list[str] = []
    for key in dump:
        if not key.startswith(base):
            continue
        name = key[len(base) :].decode()
        if name.startswith("g:"):
            waiting[name[2:]] = dump.members(key)[::-1]
        elif name.startswith("r:"):
            group_starts[name[2:]] = [int(at) for at in dump.items(key)]
        elif name.startswith("mail:"):
            mails.append(name[5:])
        elif name.startswith("hail:"):
            hails.append(name[5:])
        elif name not in FIXED:
            strangers.append(name)
    return Keyspace(
        now=dump.now if now is None else now,
        meta=decode_meta(meta),
        jobs={i: record.unpack(raw) for i, raw in raw_jobs.items()},
        places={i: _member(i, raw, rules.get("ageing", 0)) for i, raw in raw_jobs.items()},
        state={i.decode(): msgspec.msgpack.decode(raw) for i, raw in raw_states.items() if i[:1] != b"\xff"},
        history={i[1:].decode(): _history(raw) for i, raw in raw_states.items() if i[:1] == b"\xff"},
        results=hash_of("results"),
        waiting=waiting,
        groups={g: _group(raw) for g, raw in hash_of("groups").items()},
        conf={g: msgspec.msgpack.decode(raw) for g, raw in hash_of("conf").items()},
        blocked=zset_of("blocked"),
        blockers={i: (raw[6:].decode(), int.from_bytes(raw[:6], "big")) for i, raw in hash_of("blockers").items()},
        blocking=[_blocker(raw) for raw in dump.scores(keys.fixed("blocking"))],
        breakers={
            g: (int.from_bytes(raw[:4], "big"), int.from_bytes(raw[4:], "big"))
            for g, raw in hash_of("breakers").items()
        },
        breaking=zset_of("breaking"),
        opened_since=zset_of("opened"),
        ready=zset_of("ready"),
        parked=zset_of("parked"),
        delayed=zset_of("delayed"),
        active=zset_of("active"),
        leases={i: _lease(raw) for i, raw in raw_leases.items()},
        completed=zset_of("completed"),
        failed=zset_of("failed"),
        expiring=zset_of("expiring"),
        rules=rules,
        turn=turn,
        lease_workers={i: raw[20 + struct.unpack_from(">H", raw, 18)[0] :].decode() for i, raw in raw_leases.items()},
        holders=zset_of("holders"),
        ahead={i for i, raw in raw_leases.items() if raw[17]},
        starts=[int(at) for at in dump.items(keys.fixed("starts"))],
        group_starts=group_starts,
        rated=zset_of("rated"),
        dedupe=dump.fields(keys.fixed("dedupe")),
        deduped=dump.scores(keys.fixed("deduped")),
        unique={i: _unique(raw) for i, raw in hash_of("unique").items()},
        uniques=zset_of("uniques"),
        repeats={i: _repeat(raw) for i, raw in hash_of("repeats").items()},
        ticks=zset_of("ticks"),
        hails=hails,
        mails=mails,
        workers=list(hash_of("workers")),
        progress=hash_of("progress"),
        logs={i: msgspec.msgpack.decode(raw) for i, raw in hash_of("logs").items()},
        cancels=_interrupts(hash_of("interrupts"), 1),
        recalls=_interrupts(hash_of("interrupts"), 2),
        stopping=_stopping(zset_of("stopping"), hash_of("stops")),
        entries={i.decode(): msgspec.msgpack.decode(e[b"e"])[0] for i, e in dump.entries(keys.fixed("events"))},
        marks=[mark.decode() for mark in dump.items(keys.fixed("marks"))],
        minutes=measured[0],
        spreads=measured[1],
        wait=measured[2],
        run=measured[3],
        strangers=strangers,
    )


def _interrupts(found: dict[str, bytes], kind: int) -> dict[str, int]:
    """Job -> fence of those of one kind."""
    return {i: int.from_bytes(raw[1:8], "big") for i, raw in found.items() if raw[0] == kind}


def _stopping(ends: dict[str, float], runs: dict[str, bytes]) -> dict[int, tuple[float, str, str]]:
    found = {}
    for fence in {*ends, *runs}:
        raw = runs.get(fence, b"\0\0")
        size = 2 + int.from_bytes(raw[:2], "big")
        found[int(fence)] = ends.get(fence, -1.0), raw[2:size].decode(), raw[size:].decode()
    return found


Measured = tuple[dict[int, list[int]], dict[int, dict[int, int]], list[int], list[int]]


def _measured(meta: dict[str, bytes], series: dict[str, bytes]) -> Measured:
    """Minutes, their spreads, and the histograms of waits and runs, with the minute under way, which is in `meta`."""
    minutes = {int(minute): _numbers(raw[:48]) for minute, raw in series.items() if minute.isdigit()}
    spreads = {int(minute): _pairs(raw[48:]) for minute, raw in series.items() if minute.isdigit()}
    wait, run = (_numbers(series.get(name, bytes(26 * 6))) for name in ("wait", "run"))
    if "measures" in meta:
        now = decode_measures(meta["measures"])
        stored = minutes.get(now.minute, [0] * 8)
        minutes[now.minute] = [a + b for a, b in zip(stored, now.counted, strict=True)]
        spread = spreads.setdefault(now.minute, {})
        for place, n in now.spread.items():
            spread[place] = spread.get(place, 0) + n
        wait = [a + b for a, b in zip(wait, [now.counted[6], *(now.spread.get(i, 0) for i in range(25))], strict=True)]
        run = [
            a + b for a, b in zip(run, [now.counted[7], *(now.spread.get(25 + i, 0) for i in range(25))], strict=True)
        ]
    return minutes, spreads, wait, run


def _pairs(raw: bytes) -> dict[int, int]:
    flat: list[int] = msgspec.msgpack.decode(raw) if raw else []
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _history(raw: bytes) -> list[list[Any]]:
    found = []
    while raw:
        size = 4 + int.from_bytes(raw[:4], "big")
        found.append(msgspec.msgpack.decode(raw[4:size]))
        raw = raw[size:]
    return found


def _numbers(raw: bytes) -> list[int]:
    return [int.from_bytes(raw[i : i + 6], "big") for i in range(0, len(raw), 6)]


def _repeat(raw: bytes) -> dict[str, Any]:
    definition: dict[str, Any] = msgspec.msgpack.decode(raw[4 : 4 + int.from_bytes(raw[:4], "big")])
    return definition


def _member(job_id: str, raw: bytes, ageing: int) -> bytes:
    """What stands for a job in its group's zset."""
    if ageing:
        order = int.from_bytes(raw[2:10], "big") - (65535 - int.from_bytes(raw[:2], "big")) * ageing
        return b"\xff\xff" + max(order, 0).to_bytes(8, "big") + raw[10:16] + job_id.encode()
    return raw[:16] + job_id.encode()


def _group(raw: bytes) -> StoredGroup:
    running, delayed, size = struct.unpack_from(">IIH", raw)
    packed = raw[10 + size :]
    waits: dict[str, Any] = msgspec.msgpack.decode(packed) if packed else {}
    return StoredGroup(
        running,
        delayed,
        raw[10 : 10 + size],
        waits.get("h", {}),
        waits.get("r", 0),
        waits.get("s", 0),
        waits.get("u", 0),
        frozenset(waits.get("z", ())),
    )


def _blocker(raw: bytes) -> tuple[str, str, int]:
    size = 2 + int.from_bytes(raw[:2], "big")
    return raw[2:size].decode(), raw[size + 6 :].decode(), int.from_bytes(raw[size : size + 6], "big")


def _unique(raw: bytes) -> tuple[int, int, int]:
    ms, ends, made = (int.from_bytes(raw[at : at + 6], "big") for at in (0, 6, 12))
    return ms, ends, made


def _lease(raw: bytes) -> tuple[int, str]:
    """Fence and group of a lease."""
    fence = int.from_bytes(raw[:7], "big")
    (size,) = struct.unpack_from(">H", raw, 18)
    return fence, raw[20 : 20 + size].decode()


def violations(k: Keyspace) -> list[str]:
    """Every broken invariant, in words. Empty for a healthy queue."""
    parts = (_jobs, _groups, _indexes, _due, _limits, _repeats, _turn, _notes, _log, _measures, _blocks)
    return [line for part in parts for line in part(k)]


def _due(k: Keyspace) -> list[str]:
    """Nothing is due before the time at which the next call looks, and nobody misses an interrupt."""
    found = []
    times = [*k.delayed.values(), *k.parked.values(), *k.active.values(), *k.expiring.values()]
    first = min([*times, *(end for end, _, _ in k.stopping.values())], default=None)
    looks = int(k.meta.get("due", "0"))
    if first is not None and looks > first:
        found.append(f"the first thing is due at {first:.0f}, and nobody looks before {looks}")
    if (k.cancels or k.recalls) and k.meta.get("interrupts") != "1":
        found.append("there are interrupts, and the queue says that there are none")
    return found


def _jobs(k: Keyspace) -> list[str]:
    found = []
    in_groups = Counter(member[16:].decode() for members in k.waiting.values() for member in members)
    places = {group: set(members) for group, members in k.waiting.items()}
    for job_id, stored in k.jobs.items():
        group = stored.group_id or ""
        spots = [name for name in ("leases", "delayed", "completed", "failed") if job_id in getattr(k, name)]
        spots += ["waiting"] * in_groups[job_id]
        if len(spots) != 1:
            found.append(f"job {job_id!r} is in {spots or 'no place'}, not in exactly one")
        if in_groups[job_id] and k.places[job_id] not in places.get(group, ()):
            found.append(f"job {job_id!r} waits at a place or in a group that is not its own")
    for job_id in in_groups:
        if job_id not in k.jobs:
            found.append(f"member {job_id!r} of a group is no job")
    return found


def _groups(k: Keyspace) -> list[str]:
    found = []
    running = Counter(group for _, group in k.leases.values()) + Counter(group for _, group, _ in k.stopping.values())
    delayed = Counter(k.jobs[i].group_id or "" for i in k.delayed if i in k.jobs)
    alive = {g for g, members in k.waiting.items() if members} | set(running) | set(delayed)
    if alive != set(k.groups):
        found.append(f"groups with live jobs {sorted(alive)} are not the listed ones {sorted(k.groups)}")
    for name, g in k.groups.items():
        if (g.running, g.delayed) != (running[name], delayed[name]):
            found.append(
                f"group {name!r} says {g.running} running, {g.delayed} delayed; "
                f"there are {running[name]} and {delayed[name]}"
            )
        if g.head != (k.waiting.get(name) or [b""])[0]:
            found.append(f"group {name!r} says its head is {g.head!r}, its zset says otherwise")
        if not g.snoozed <= set(g.holds):
            found.append(f"group {name!r} says that {set(g.snoozed)} are snoozed, and holds {set(g.holds)}")
        for held in g.holds:
            if held not in k.waiting_ids(name):
                found.append(f"group {name!r} holds {held!r}, which does not wait in it")
        found += _place(k, name, g)
    for name in [*k.ready, *k.parked]:
        if name not in k.groups:
            found.append(f"{name!r} is in ready or parked but has no live job")
    return found


def _entry(k: Keyspace, name: str) -> tuple[str, float | None]:
    """Where a group stands, and by what score; None if nowhere."""
    return ("ready", k.ready[name]) if name in k.ready else ("parked", k.parked.get(name))


def _place(k: Keyspace, name: str, g: StoredGroup) -> list[str]:
    """A group is in exactly the one place that its contents give it."""
    members = k.waiting.get(name, [])
    actual = _entry(k, name)
    if name in k.ready and name in k.parked:
        return [f"group {name!r} is both ready and parked"]
    stopped = k.conf.get(name, {}).get("paused") or name in k.blocked
    probed = k.opened(name) and g.running > 0
    free = not members or stopped or probed or g.running >= k.limit(name)
    if free:
        return [] if actual[1] is None else [f"group {name!r} is {actual} but has nothing it may start"]
    opens = _opens(k, name, g, members[0])
    if opens > k.now:
        return [] if actual == ("parked", opens) else [f"group {name!r} is {actual}, its head must wait until {opens}"]
    due_but_parked = actual[0] == "parked" and actual[1] is not None and actual[1] <= k.now
    if due_but_parked or (
        actual[0] == "ready" and actual[1] is not None and _right_score(k, name, members[0], actual[1])
    ):
        return []
    return [f"group {name!r} is {actual}, though its head may start"]


def _opens(k: Keyspace, name: str, g: StoredGroup, head: bytes) -> float:
    """When the head of a group may start."""
    times = [g.holds.get(head[16:].decode(), 0), g.rest, g.till, k.opened(name)]
    if name and "event_window" in k.rules:
        times.append(min(2**63 - 1 - int.from_bytes(head[2:10], "big") + k.rules["event_window"], 2**53))
    rate, starts = k.rate(name), k.group_starts.get(name, [])
    if rate and len(starts) >= rate[0] and 0 <= k.now - starts[rate[0] - 1] <= rate[1]:
        times.append(starts[rate[0] - 1] + rate[1] + 1)
    return float(max(times))


def _right_score(k: Keyspace, name: str, head: bytes, score: float) -> bool:
    """Whether a ready group stands where its head, and the queue's fairness, put it."""
    priority, arrival = 65535 - int.from_bytes(head[:2], "big"), 2**48 - 1 - int.from_bytes(head[10:16], "big")
    if "ageing" in k.rules:
        job = k.jobs[head[16:].decode()]
        since = job.created_ms if job.order_given else job.order_ms
        aged = since - 1_577_836_800_000 + job.priority * k.rules["ageing"]
        return bool(score == aged * 4096 + arrival % 4096)
    if "round_robin" in k.rules and name:
        return score // PRIORITY_UNIT == priority and 0 < score % PRIORITY_UNIT <= int(k.meta["seq"])
    return score == priority * PRIORITY_UNIT + arrival


def _indexes(k: Keyspace) -> list[str]:
    found = [f"unknown key {name!r}" for name in k.strangers]
    if set(k.active) != set(k.leases):
        found.append(f"deadlines of {sorted(k.active)} but leases of {sorted(k.leases)}")
    for name in ("state", "history", "leases", "delayed", "completed", "failed"):
        gone = set(getattr(k, name)) - set(k.jobs)
        if gone:
            found.append(f"{name} knows jobs that do not exist: {sorted(gone)}")
    if not set(k.results) <= set(k.completed):
        found.append(f"results of jobs that are not completed: {sorted(set(k.results) - set(k.completed))}")
    if (k.meta.get("overrides") == "1") != bool(k.conf):
        found.append(f"overrides is {k.meta.get('overrides')!r} with {len(k.conf)} groups configured")
    if k.holders and k.meta.get("held") != "1":
        found.append(f"{sorted(k.holders)} have taken a reserve, and nothing says that any worker has")
    fences = [fence for fence, _ in k.leases.values()]
    if len(set(fences)) != len(fences) or any(t > int(k.meta.get("stamp", "0")) for t in fences):
        found.append("fences are not unique, or beyond the last one given")
    return found


def _limits(k: Keyspace) -> list[str]:
    found = []
    waiting = {member[16:].decode() for members in k.waiting.values() for member in members}
    for job_id in k.expiring:
        if job_id not in waiting and job_id not in k.delayed:
            found.append(f"job {job_id!r} has a ttl to run out, though it is not waiting to start")
    if k.expiring and k.meta.get("ttls") != "1":
        found.append("jobs have a ttl, and nothing says that any has")
    if set(k.group_starts) != set(k.rated):
        found.append(f"starts of groups {sorted(k.group_starts)} are kept, {sorted(k.rated)} are listed")
    if set(k.breakers) != set(k.breaking):
        found.append(f"failures of groups {sorted(k.breakers)} are counted, those of {sorted(k.breaking)} end")
    if set(k.opened_since) != {group for group, (_, till) in k.breakers.items() if till}:
        found.append(f"breakers of groups {k.breakers} are counted, {sorted(k.opened_since)} are listed as open")
    if k.breakers and k.meta.get("breakers") != "1":
        found.append("failures of groups are counted, and nothing says that any are")
    if any(k.breaking.get(group, 0) < till for group, (_, till) in k.breakers.items()):
        found.append("failures of a group are forgotten while it rests")
    for job_id, (_, ends, _) in k.unique.items():
        lives = job_id in k.jobs and job_id not in k.completed and job_id not in k.failed
        if lives != (ends == 0):
            found.append(f"id {job_id!r} is taken until {ends}, its job lives: {lives}")
    if k.uniques != {job_id: ends for job_id, (_, ends, _) in k.unique.items() if ends}:
        found.append(f"ids {k.unique} are taken, the times are {k.uniques}")
    if k.unique and k.meta.get("uniques") != "1":
        found.append("ids stay taken, and nothing says that any does")
    if set(k.dedupe) != set(k.deduped):
        found.append("keys of dedupe and their times are not the same")
    size = k.rules.get("rate", [0])[0]
    if len(k.starts) > size:
        found.append(f"{len(k.starts)} starts are kept, {size} are enough")
    return found


def _repeats(k: Keyspace) -> list[str]:
    found = []
    if {name: float(d["next"]) for name, d in k.repeats.items()} != k.ticks:
        found.append(f"repeats {sorted(k.repeats)} do not tick as listed: {k.ticks}")
    first = min(k.ticks.values(), default=None)
    if (None if first is None else str(int(first))) != k.meta.get("repeat_at"):
        found.append(f"the next tick is {first}, the queue says {k.meta.get('repeat_at')}")
    return found


def _turn(k: Keyspace) -> list[str]:
    """In an exclusive queue whoever has a lease has the turn, and nobody else has either."""
    found = []
    holders = set(k.lease_workers.values()) | {worker for _, _, worker in k.stopping.values()}
    if "exclusive" in k.rules and holders != ({k.turn[0]} if k.turn else set()):
        found.append(f"leases of {sorted(holders)} in a turn of {k.turn}")
    if "exclusive" not in k.rules and k.turn:
        found.append(f"a turn of {k.turn} in a queue that is not exclusive")
    if k.turn and any(deadline > k.turn[2] for deadline in k.active.values()):
        found.append("a lease outlives the turn it was given in")
    if set(k.hails) - ({k.turn[0]} if k.turn else set()):
        found.append(f"markers of {k.hails}, whose turn it is not")
    if set(k.mails) - set(k.workers):
        found.append(f"mail for {k.mails}, of whom only {k.workers} are there")
    return found


def _notes(k: Keyspace) -> list[str]:
    """What handlers said is there as long as their jobs are; what is to be stopped runs."""
    found = []
    for name in ("progress", "logs"):
        gone = set(getattr(k, name)) - set(k.jobs)
        if gone:
            found.append(f"{name} of jobs that do not exist: {sorted(gone)}")
    if (k.progress or k.logs) and k.meta.get("notes") != "1":
        found.append("handlers have said something, and nothing says that any has")
    found += [f"job {i!r} has {len(lines)} lines of log" for i, lines in k.logs.items() if not 1 <= len(lines) <= 100]
    for job_id, fence in (k.cancels | k.recalls).items():
        if k.leases.get(job_id, (0, ""))[0] != fence:
            found.append(f"job {job_id!r} is to be stopped under fence {fence}, its lease is {k.leases.get(job_id)}")
        if (job_id in k.ahead) != (job_id in k.recalls):
            found.append(f"job {job_id!r} is recalled or cancelled, and prefetched: {job_id in k.ahead}")
    if any(end < 0 or not worker for end, _, worker in k.stopping.values()):
        found.append(f"runs that are being stopped are not whole: {k.stopping}")
    first = min((end for end, _, _ in k.stopping.values()), default=None)
    if (None if first is None else str(int(first))) != k.meta.get("stopping"):
        found.append(f"the first run being stopped ends at {first}, the queue says {k.meta.get('stopping')}")
    return found


def _blocks(k: Keyspace) -> list[str]:
    """A group is blocked as long as one of its failed jobs says so, and all indexes agree which ones do."""
    found = []
    for job_id, (group, since) in k.blockers.items():
        if job_id not in k.failed or job_id not in k.jobs or k.jobs[job_id].group_id != group or not group:
            found.append(f"job {job_id!r} blocks group {group!r} and is no failed job of it")
        if k.blocked.get(group, since + 1) > since:
            found.append(f"job {job_id!r} blocks group {group!r} since {since}, which says {k.blocked.get(group)}")
    if sorted((group, job_id, since) for job_id, (group, since) in k.blockers.items()) != sorted(k.blocking):
        found.append(f"blocking jobs {k.blockers} are not those listed by group: {k.blocking}")
    if set(k.blocked) != {group for group, _ in k.blockers.values()}:
        found.append(f"groups {sorted(k.blocked)} are blocked, by {k.blockers}")
    if bool(k.blocked) != (k.meta.get("blocks") == "1"):
        found.append(f"groups {sorted(k.blocked)} are blocked, the queue says {k.meta.get('blocks')!r}")
    spared = float(k.meta.get("spared", "0"))
    free = [job_id for job_id, stamp in k.failed.items() if stamp <= spared and job_id not in k.blockers]
    if free:
        found.append(f"failed jobs {free} block nothing, and are never forgotten")
    return found


def _log(k: Keyspace) -> list[str]:
    """The log of events counts its entries without a hole and knows where its segments begin."""
    found = []
    if "silent" in k.rules and (k.entries or k.marks):
        found.append(f"{len(k.entries)} events of a queue that tells none")
    numbers, logged = list(k.entries.values()), int(k.meta.get("logged", "0"))
    if numbers != list(range(logged - len(numbers) + 1, logged + 1)):
        found.append(f"entries {numbers[:3]} ... {numbers[-3:]} of the log, {logged} were written")
    if k.marks != [mark for mark in k.entries if mark in set(k.marks)] or len(k.marks) > 8:
        found.append(f"marks {k.marks} are not ids of entries, in order")
    if not 0 <= int(k.meta.get("log_bytes", "0")) < 524_288:
        found.append(f"a segment of {k.meta['log_bytes']} bytes")
    return found


def _measures(k: Keyspace) -> list[str]:
    """As long as no minute is forgotten, minutes add up to the counters, and to the jobs that waited."""
    if len(k.minutes) > 20_160 + 840:
        return [f"{len(k.minutes)} minutes are kept"]
    if k.minutes and max(k.minutes) - min(k.minutes) >= 20_160:
        return []
    sums = [sum(column) for column in zip(*k.minutes.values(), strict=True)] or [0] * 8
    counters = [int(k.meta.get(name, "0")) for name in ("processed", "failed", "retried", "stalled", "limited")]
    found = []
    if sums[:5] != counters:
        found.append(f"minutes add up to {sums[:5]}, the counters say {counters}")
    if sums[5:7] != [sum(k.wait[1:]), sum(k.wait[:1])]:
        found.append(f"minutes say {sums[5:7]} jobs and ms of waiting, the histogram {k.wait}")
    if sums[7:] != [sum(k.run[:1])]:
        found.append(f"minutes say {sums[7]} ms of running, the histogram {k.run}")
    return found + _spreads(k)


def _spreads(k: Keyspace) -> list[str]:
    """Every minute knows how long its own jobs waited and ran; together they are the histograms."""
    found, noted, so_far = [], [0] * 50, [*k.wait[1:], *k.run[1:]]
    for minute, spread in k.spreads.items():
        waited = sum(n for place, n in spread.items() if place < 25)
        if waited != k.minutes[minute][5]:
            found.append(f"minute {minute}: {k.minutes[minute][5]} jobs started, the waits of {waited} are noted")
        for place, n in spread.items():
            if place < 50:
                noted[place] += n
    if noted != so_far:
        found.append(f"minutes noted {noted}, the histograms say {so_far}")
    return found


def check(client: redis.Redis) -> None:
    """Check every queue on a server; fail with all that is wrong."""
    dump = Dump(client)
    found = []
    ours = [key for key in dump if b":{" in key and b"}:" in key]
    metas = [key for key in ours if key.endswith(b"}:meta")]
    for key in ours:
        if not any(key.startswith(meta[: -len("meta")]) for meta in metas):
            found.append(f"key {key!r} belongs to no queue: a leak")
    for key in metas:
        prefix, _, rest = key.decode().partition(":{")
        queue = rest[: -len("}:meta")]
        found += [f"{queue}: {line}" for line in violations(read(dump, prefix, queue))]
    assert not found, "broken invariants:\n  " + "\n  ".join(found)
