"""The abstract state of a queue on a server, in the same terms as that of the model."""

from __future__ import annotations

import struct
from collections import Counter
from typing import Any

import msgspec

from groupmq.protocol.commands import StoredState
from groupmq.protocol.keys import registry_key
from tests.model import event_log
from tests.model.model import Model
from tests.model.parts import Entry, StandIn, Turn
from tests.support import keyspace
from tests.support.dump import Dump
from tests.support.keyspace import Keyspace

# Settings, and values that the invariants of the keyspace already check (those of the event log among them).
NOT_OF_THE_MODEL = {
    *(
        "schema",
        "config",
        "handling",
        "revision",
        "overrides",
        "repeat_at",
        "logged",
        "log_bytes",
        "stopping",
        "period",
        "resent",
        "due",
    ),
    *("interrupts", "attempts", "loose", "large", "blocks", "breakers", "uniques", "spared"),
}


class Stored:
    """One queue in a dump."""

    def __init__(self, dump: Dump, queue: str, now: int) -> None:
        self.keyspace: Keyspace = keyspace.read(dump, "groupmq", queue, now)
        self._dump = dump
        self._base = f"groupmq:{{{queue}}}:"
        listed = registry_key("groupmq").encode()  # the scripts do not touch it
        self.foreign = [key for key in dump if key != listed and not key.startswith(self._base.encode())]

    def marker(self, turn: Turn | None = None) -> bool:
        """Whether the marker is set: that of the worker with the turn, if there is one, since only it may take jobs."""
        name = f"wake:{turn.worker}" if turn else "wake"
        return bool(self._dump.members(self._base + name))

    def entries_after(self, number: int) -> list[Entry]:
        """The entries of the log after the one with this number."""
        return event_log.entries_after(number, self._dump.entries(self._base + "events"))

    def log_sizes(self) -> dict[int, int]:
        """Bytes of each entry of the log, by its number."""
        return event_log.sizes(self._dump.entries(self._base + "events"))

    def state(self) -> dict[str, Any]:
        k, base = self.keyspace, self._base
        requesters = self._dump.fields(base + "requesters").items()
        leases = {i.decode(): _lease(raw) for i, raw in self._dump.fields(base + "leases").items()}
        return {
            "records": k.jobs,
            "waiting": {group: k.waiting_ids(group) for group in k.waiting},
            "delayed": k.delayed,
            "expiring": k.expiring,
            "active": {i: (k.active.get(i), *lease) for i, lease in leases.items()},
            "completed": list(k.completed.items()),
            "failed": list(k.failed.items()),
            "stored": {i: StoredState(*s) for i, s in k.state.items()},
            "history": k.history,
            "results": k.results,
            "groups": {g: (s.running, s.delayed, s.holds, s.snoozed) for g, s in k.groups.items()},
            # A rest that is over is deleted when the next call loads the group.
            "rests": {g: s.rest for g, s in k.groups.items() if s.rest > k.now},
            "windows": {g: (s.since, s.till) for g, s in k.groups.items() if s.till > k.now},
            "conf": {
                g: (bool(c.get("paused")), c.get("limit", 0), tuple(c.get("rate", ()))) for g, c in k.conf.items()
            },
            "breakers": {g: (*failing, k.breaking.get(g)) for g, failing in k.breakers.items()},
            "opened": k.opened_since,
            "uniques": k.unique,
            "blocked": k.blocked,
            "blockers": k.blockers,
            "meta": {n: v for n, v in k.meta.items() if v and n not in NOT_OF_THE_MODEL},
            "starts": k.starts,
            "group starts": {g: (tuple(times), k.rated.get(g)) for g, times in k.group_starts.items()},
            "dedupe": {_scope(name): _stand_in(raw) for name, raw in k.dedupe.items()},
            "dedupe ends": {_scope(name): ends for name, ends in k.deduped.items()},
            "repeats": {i: {n: v for n, v in d.items() if n != "data"} for i, d in k.repeats.items()},
            "turn": k.turn,
            "holders": k.holders,
            "failures": [msgspec.msgpack.decode(raw) for raw in self._dump.items(base + "failures")],
            "requesters": {name.decode(): _requester(raw) for name, raw in requesters},
            "workers": {i.decode(): raw.decode() for i, raw in self._dump.fields(base + "workers").items()},
            "mail": set(k.mails),
            "grant": k.grant,
            "grants": k.grants,
            "waits": k.wait if any(k.wait) else [],
            "runs": k.run if any(k.run) else [],
            "dropped": sum(spread.get(50, 0) for spread in k.spreads.values()),
            "cancels": k.cancels,
            "recalls": k.recalls,
            "stopping": k.stopping,
            "progress": {i: raw.decode() for i, raw in k.progress.items()},
            "logs": k.logs,
        }


def _scope(name: bytes) -> tuple[int, str, str]:
    """Kind, group and key of a dedupe."""
    size = int.from_bytes(name[1:3], "big")
    return int(name[:1]), name[3 : 3 + size].decode(), name[3 + size :].decode()


def _stand_in(raw: bytes) -> StandIn:
    return StandIn(raw[12:].decode(), int.from_bytes(raw[6:12], "big"), int.from_bytes(raw[:6], "big"))


def _lease(raw: bytes) -> tuple[int, int, int, int, int, str, str]:
    """Fence, start, attempts, stalls, how it was prefetched, group and worker."""
    fence, started = int.from_bytes(raw[:7], "big"), int.from_bytes(raw[7:13], "big")
    attempts, stalls, ahead, size = struct.unpack_from(">HHBH", raw, 13)
    return fence, started, attempts, stalls, ahead, raw[20 : 20 + size].decode(), raw[20 + size :].decode()


def _requester(raw: bytes) -> tuple[int, list[str]]:
    """Number and jobs of the last request. The rest of the stored answer is compared when a request is resent."""
    return int.from_bytes(raw[:7], "big"), msgspec.msgpack.decode(raw[7:])[1]


def expected(model: Model, now: int) -> dict[str, Any]:
    """The same view of the model."""
    jobs = model.jobs.values()
    turn, grant = model.turn, model.grant
    return {
        "records": {j.id: j.record for j in jobs},
        "waiting": {g: [j.id for j in model.waiting(g)] for g in {j.group for j in model.in_state("waiting")}},
        "delayed": {j.id: j.due for j in model.in_state("delayed")},
        "expiring": {j.id: j.expires for j in jobs if j.expires},
        "active": {j.id: _active(j) for j in jobs if j.lease},
        "completed": [(j.id, j.stamp) for j in model.finished("completed")],
        "failed": [(j.id, j.stamp) for j in model.finished("failed")],
        "stored": {j.id: j.stored for j in jobs if j.stored is not None},
        "history": {j.id: j.history for j in jobs if j.history},
        "results": {j.id: j.result for j in jobs if j.result is not None},
        "groups": {
            g: (
                model.running(g),
                len(model.in_state("delayed", g)),
                {j.id: j.hold for j in model.in_state("waiting", g) if j.hold},
                {j.id for j in model.in_state("waiting", g) if j.snoozed},
            )
            for g in model.live_groups()
        },
        "rests": {g: rest for g, rest in model.rests.items() if rest > now},
        "windows": {g: (w.since, w.till) for g, w in model.windows.items() if w.till > now},
        "conf": {g: (c.paused, c.limit, c.rate) for g, c in model.conf.items()},
        "breakers": {g: (f.failures, f.opened, f.forgotten) for g, f in model.breakers.items()},
        "opened": model.opened_since(),
        "uniques": {i: (taken.ms, taken.ends, taken.made) for i, taken in model.uniques.items()},
        "blocked": model.blocked,
        "blockers": {j.id: (j.group, j.blocks) for j in jobs if j.blocks},
        "meta": _meta(model),
        "starts": model.starts,
        "group starts": {g: (s.times, s.until) for g, s in model.group_starts.items()},
        "dedupe": model.stand_ins,
        "dedupe ends": {scope: s.ends for scope, s in model.stand_ins.items()},
        "repeats": {i: repeat.fields for i, repeat in model.repeats.items()},
        "turn": [turn.worker, turn.epoch, turn.deadline, turn.taken] if turn else None,
        "failures": model.failures,
        "holders": model.holders,
        "requesters": {name: (last.number, [i for i, _ in last.leases]) for name, last in model.requesters.items()},
        "workers": model.workers,
        "mail": model.mail,
        "grant": grant and (grant.worker, grant.job_id, grant.fence),
        "grants": {grant.worker: [grant.fence]} if grant and not grant.read else {},
        "waits": _histogram(model.waits),
        "runs": _histogram(model.runs),
        "dropped": model.dropped,
        "cancels": {j.id: j.lease.fence for j in jobs if j.lease and j.lease.cancelled},
        "recalls": {j.id: j.lease.fence for j in jobs if j.lease and j.lease.recalled},
        "stopping": {fence: (s.deadline, s.group, s.worker) for fence, s in model.stopping.items()},
        "progress": {j.id: j.progress for j in jobs if j.progress is not None},
        "logs": {j.id: j.log for j in jobs if j.log},
    }


def _histogram(times: list[int]) -> list[int]:
    """The sum of the times, then the number of times below 1, 2, 4 ... ms; the last bucket has all longer ones."""
    counts = Counter(min(ms.bit_length(), 24) for ms in times)
    return [sum(times), *(counts[i] for i in range(25))] if times else []


def _meta(model: Model) -> dict[str, str]:
    numbers = {
        "seq": model.arrivals,
        "stamp": model.stamp,
        "order": model.order,
        "ttls": int(model.had_ttl),
        "progress": int(model.had_progress),
        "limited_until": model.throttled,
        "epoch": model.turns_begun,
        "held": int(model.held),
        "asked": model.asked,
        "idle": model.idle and f"{model.idle[0]} {model.idle[1]}",
        "paused": int(model.paused),
        **model.counters,
    }
    return {name: str(n) for name, n in numbers.items() if n} | {"limit": str(model.options.group_concurrency)}


def _active(job: Any) -> tuple[Any, ...]:
    lease, before = job.lease, job.stored or StoredState()
    stage = 0 if lease.begun else 1 + lease.ahead + lease.reserved
    known = lease.fence, lease.started, before.attempts, before.stalls, stage
    return lease.deadline, *known, job.group, lease.worker


def differences(model: Model, stored: Stored, turn_size: int) -> list[str]:
    """Every difference between the server and the model, and every broken invariant."""
    want, have = expected(model, stored.keyspace.now), stored.state()
    found = [f"{name}: stored {have[name]!r}, expected {want[name]!r}" for name in want if have[name] != want[name]]
    found += keyspace.violations(stored.keyspace)
    found += [f"a key outside of the queue: {key!r}" for key in stored.foreign]
    ready = set(stored.keyspace.ready) - model.awaited
    if ready and needs_marker(model, stored.keyspace.now, turn_size) and not stored.marker(model.turn):
        found.append(f"{sorted(ready)} are ready, but no marker wakes a worker")
    offered = stored.keyspace.offer
    if offered is not None and offered != model.offer:
        found.append(f"the stored offer is {offered}, expected {model.offer}")
    if ready and offered and needs_marker(model, stored.keyspace.now, turn_size):
        found.append(f"{sorted(ready)} are ready, but the next job that is added is granted before them")
    return found


def needs_marker(model: Model, now: int, turn_size: int) -> bool:
    """Whether ready work needs a marker: not while nothing may start, or if the workers that may take it know of it.

    A turn whose leases are over ends with the next call, which has its own timer. While due jobs have not joined their
    groups, so that none of these may start, the worker with the turn was told to ask again at once.
    """
    if model.paused or model.throttled > now or model.told:
        return False
    if model.turn is not None and model.overdue_to_join(now) and not model.runnable(now):
        return False
    return model.turn is None or (model.turn.taken < turn_size and model.turn.deadline > now)
