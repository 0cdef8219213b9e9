"""Reads the keys of a queue and decodes every value by the layout in `lua/lib/keys.lua` and `record.lua`."""

from __future__ import annotations

import struct
from typing import Any

import msgspec

from groupmq.core import record
from groupmq.protocol.keys import FIXED, Keys
from tests.support.dump import Dump
from tests.support.keyspace.contents import Keyspace, StoredGroup
from tests.support.meta import decode as decode_meta
from tests.support.meta import measures as decode_measures


def read(dump: Dump, prefix: str, queue: str, now: int | None = None) -> Keyspace:
    """All keys of a queue."""
    keys = Keys(prefix, queue)
    base = keys.base.encode()

    def hash_of(name: str) -> dict[str, bytes]:
        return {f.decode(): v for f, v in dump.fields(keys.fixed(name)).items()}

    def zset_of(name: str) -> dict[str, float]:
        return {m.decode(): s for m, s in dump.scores(keys.fixed(name)).items()}

    raw_jobs, raw_leases, meta, series = hash_of("jobs"), hash_of("leases"), hash_of("meta"), hash_of("series")
    raw_bodies = dump.fields(keys.fixed("bodies"))
    bodies = {i.decode(): raw for i, raw in raw_bodies.items() if i[:1] != b"\xff"}
    raw_states = dump.fields(keys.fixed("state"))
    rules: dict[str, Any] = msgspec.msgpack.decode(meta.pop("rules", b"\x80"))
    turn: list[Any] | None = msgspec.msgpack.decode(meta.pop("turn")) if "turn" in meta else None
    offered = meta.pop("offer", b"")
    measured = _measured(meta, series)
    waiting: dict[str, list[bytes]] = {}
    group_starts: dict[str, list[int]] = {}
    turn_markers: list[str] = []
    mails: list[str] = []
    grants: dict[str, list[int]] = {}
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
        elif name.startswith("wake:"):
            turn_markers.append(name[5:])
        elif name.startswith("grants:"):
            grants[name[7:]] = [int.from_bytes(raw[:7], "big") for raw in dump.members(key)]
        elif name not in FIXED:
            strangers.append(name)
    groups = {g: _group(raw) for g, raw in hash_of("groups").items()}
    for name, group in groups.items():
        if group.alone:
            waiting.setdefault(name, []).append(group.head)
    return Keyspace(
        now=dump.now if now is None else now,
        meta=decode_meta(meta),
        jobs={i: record.unpack(raw + bodies.get(i, b"")) for i, raw in raw_jobs.items()},
        places={i: _member(i, raw, rules.get("ageing", 0)) for i, raw in raw_jobs.items()},
        bodies=bodies,
        repeat_bodies={i[1:].decode() for i in raw_bodies if i[:1] == b"\xff"},
        beside={i for i, raw in raw_jobs.items() if raw[24] & 16},
        state={i.decode(): msgspec.msgpack.decode(raw) for i, raw in raw_states.items() if i[:1] != b"\xff"},
        history={i[1:].decode(): _history(raw) for i, raw in raw_states.items() if i[:1] == b"\xff"},
        results=hash_of("results"),
        waiting=waiting,
        groups=groups,
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
        granted={i for i, raw in raw_leases.items() if raw[17] == 1},
        ahead={i for i, raw in raw_leases.items() if raw[17] > 1},
        starts=[int(at) for at in dump.items(keys.fixed("starts"))],
        group_starts=group_starts,
        rated=zset_of("rated"),
        dedupe=dump.fields(keys.fixed("dedupe")),
        deduped=dump.scores(keys.fixed("deduped")),
        unique={i: _unique(raw) for i, raw in hash_of("unique").items()},
        uniques=zset_of("uniques"),
        repeats={i: _repeat(raw) for i, raw in hash_of("repeats").items()},
        ticks=zset_of("ticks"),
        turn_markers=turn_markers,
        mails=mails,
        offer=(offered[7:].decode(), int.from_bytes(offered[1:7], "big")) if offered[:1] == b"o" else None,
        grant=grant_of(offered),
        grants=grants,
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
    """The interrupts of one kind: job -> fence."""
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
    """The minutes, their distributions, and the histograms of waits and runs; the current minute is in `meta`."""
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
    """The member of a job in the sorted set of its group."""
    if ageing:
        order = int.from_bytes(raw[2:10], "big") - (65535 - int.from_bytes(raw[:2], "big")) * ageing
        return b"\xff\xff" + max(order, 0).to_bytes(8, "big") + raw[10:16] + job_id.encode()
    return raw[:16] + job_id.encode()


def _group(raw: bytes) -> StoredGroup:
    running, delayed, alone, size = struct.unpack_from(">II?H", raw)
    packed = raw[11 + size :]
    waits: dict[str, Any] = msgspec.msgpack.decode(packed) if packed else {}
    return StoredGroup(
        running,
        delayed,
        raw[11 : 11 + size],
        waits.get("h", {}),
        waits.get("r", 0),
        waits.get("s", 0),
        waits.get("u", 0),
        frozenset(waits.get("z", ())),
        alone,
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


def grant_of(offer: bytes) -> tuple[str, str, int] | None:
    """Worker, job id and fence of the granted job in the field `offer`, as `lua/lib/offer.lua` describes it."""
    if offer[:1] != b"g":
        return None
    end = 10 + int.from_bytes(offer[8:10], "big")
    return offer[end:].decode(), offer[10:end].decode(), int.from_bytes(offer[1:8], "big")
