"""Calls about the queue as a whole: opening, switches, counts, lists, repair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from groupmq.core.queue_options import QueueOptions
from groupmq.core.settings import QueueSettings, StoredQueue, changed
from groupmq.protocol.call import PARTITIONED, SCHEMA, Call, arguments, text, texts
from groupmq.protocol.requesters import Request

NEW = "0"
"""The revision of a partition that was made and is not yet confirmed by its queue."""


def open_queue(options: QueueOptions, was: StoredQueue | None = None) -> Call[StoredQueue]:
    """Make the queue if it does not exist, and return its stored entry.

    `was`: replace its settings if they are still these. Otherwise nothing changes.
    """
    args = arguments(
        schema=PARTITIONED if (options.partitions or 1) > 1 else SCHEMA,
        config=options.shared,
        handling=options.handling,
        concurrency=options.group_concurrency,
        rules=options.rules,
        was=None if was is None else [was.config, was.handling],
    )
    return Call("open", args, stored_queue)


def open_partition(name: str, queue: StoredQueue, was: StoredQueue | None = None) -> Call[StoredQueue]:
    """Make a partition of a queue, with its settings, if it does not exist, and return its stored entry.

    A new one has a revision that no call carries, until its maker has asked the queue whether it still has this
    partition. `was`: replace settings and revision of a partition that exists, if its revision is still that one.
    """
    options = changed(QueueSettings.of(queue), name, {})
    args = arguments(
        schema=SCHEMA,
        config=queue.config,
        handling=queue.handling,
        concurrency=options.group_concurrency,
        rules=options.rules,
        revision=NEW if was is None else queue.revision.decode(),
        instead=None if was is None else was.revision.decode(),
    )
    return Call("open", args, stored_queue)


def look_at_queue() -> Call[StoredQueue]:
    """Read the stored entry of the queue as a whole; its schema is None if the queue does not exist."""
    return Call("look_settings", arguments(), stored_queue)


def read_settings(key: str) -> tuple[str, ...]:
    """The same as a plain command, for a connection to a partition, whose server need not be that of the queue."""
    return ("HMGET", key, "schema", "config", "handling", "revision")


def stored_queue(reply: list[bytes | None]) -> StoredQueue:
    """The entry in a reply to `read_settings`."""
    schema, config, handling, revision = reply
    return StoredQueue(
        None if schema is None else schema.decode(),
        (config or b"{}").decode(),
        (handling or b"").decode(),
        revision or b"",
    )


def absorb(numbers: Sequence[bytes], name: str, queue: StoredQueue, moving: str | None = None) -> Call[int]:
    """Make a partition from keys that were copied from others.

    `numbers`: those of the others. `queue`: the settings that the partition gets. `moving`: only if the keys are those
    of the queue itself: how far its repartitioning has come.
    """
    options = changed(QueueSettings.of(queue), name, {})
    fields = ["schema", SCHEMA, "config", queue.config]
    if queue.handling:
        fields += ["handling", queue.handling, "revision", queue.revision.decode()]
    args = arguments(
        sizes=[len(raw) for raw in numbers],
        concurrency=options.group_concurrency,
        rules=options.rules,
        fields=fields if moving is None else [*fields, "moving", moving],
    )
    return Call("absorb", args, int, b"".join(numbers))


def strike(ids: Sequence[str], entries: Sequence[str]) -> Call[int]:
    """Delete those entries of `elsewhere` that have not changed since they were read; returns how many."""
    return Call("strike", arguments(ids=list(ids), entries=list(entries)), int)


def switch(
    *,
    paused: bool | None = None,
    group_id: str | None = None,
    concurrency: int | None = None,
    rate: Sequence[int] | None = None,
    now: int | None = None,
) -> Call[bool]:
    """Set what operators control; None = unchanged. `rate`: starts and milliseconds; empty = the queue's own."""
    args = arguments(paused=paused, group=group_id, concurrency=concurrency, rate=rate, now=now)
    return Call("switch", args, lambda reply: reply == 1)


def counts() -> Call[list[int]]:
    return Call("counts", arguments(), list)


def look_group(group_id: str, now: int | None = None) -> Call[list[Any]]:
    return Call("look_group", arguments(group=group_id, now=now), lambda reply: [text(reply[0]), *reply[1:]])


def list_jobs(kind: str, offset: int, limit: int, *, newest: bool = False) -> Call[list[str]]:
    return Call("list", arguments(kind=kind, offset=offset, limit=limit, newest=newest), texts)


def _parse_page(reply: list[Any]) -> tuple[str, list[str]]:
    return reply[0].decode(), texts(reply[1])


def list_waiting(cursor: str, limit: int) -> Call[tuple[str, list[str], list[str]]]:
    def parse(reply: list[Any]) -> tuple[str, list[str], list[str]]:
        return (*_parse_page(reply), texts(reply[2]))

    return Call("list_waiting", arguments(cursor=cursor, limit=limit), parse)


def list_group(group_id: str, after: bytes, limit: int) -> Call[tuple[list[str], bytes | None]]:
    def parse(reply: list[Any]) -> tuple[list[str], bytes | None]:
        return texts(reply[0]), reply[1]

    return Call("list_group", arguments(group=group_id, limit=limit), parse, after)


def list_groups(cursor: str) -> Call[tuple[str, list[str]]]:
    return Call("list_groups", arguments(cursor=cursor), _parse_page)


def clean(kind: str, age_ms: int, limit: int, now: int | None = None) -> Call[int]:
    return Call("clean", arguments(kind=kind, age=age_ms, limit=limit, now=now), int)


def obliterate() -> Call[int]:
    return Call("obliterate", arguments(), int)


class Mended(NamedTuple):
    cursor: str
    looked_at: int
    damage: list[tuple[str, str]]
    groups: list[str]


def _parse_mended(reply: list[Any]) -> Mended:
    flat = reply[2]
    damage = [(flat[i].decode(), flat[i + 1].decode()) for i in range(0, len(flat), 2)]
    return Mended(reply[0].decode(), reply[1], damage, texts(reply[3]))


def repair(structure: str, cursor: str, group_id: str | None = None, now: int | None = None) -> Call[Mended]:
    return Call("repair", arguments(structure=structure, cursor=cursor, group=group_id, now=now), _parse_mended)


def repair_delayed_counts(
    counts: Mapping[str, int], prints: Mapping[str, str] | None = None, now: int | None = None
) -> Call[Mended]:
    """Compare `counts`, the delayed jobs of each group as the caller has counted them, with the stored counts.

    Without `prints`, `groups` of the answer are those that disagree, each followed by a fingerprint of its value. With
    these as `prints`, groups whose value is still the same are mended.
    """
    args = arguments(
        structure="delayed counts",
        groups=list(counts),
        counts=list(counts.values()),
        prints=None if prints is None else [prints[group_id] for group_id in counts],
        now=now,
    )
    return Call("repair", args, _parse_mended)


def look_kept_reply(request: Request) -> Call[list[Any]]:
    """The answer that a call got the first time it was sent, as it came, in a list; empty if none is kept."""
    return Call("look_kept_reply", arguments(requester=request.requester, number=str(request.number)), list)


def look_turn(now: int | None = None) -> Call[list[Any]]:
    return Call("look_turn", arguments(now=now), lambda reply: [text(reply[0]), *reply[1:]] if reply else [])


def log(since: str, count: int) -> Call[list[Any]]:
    """Entries of the log of events, as `events.read` takes them; `(` before the id excludes that entry."""
    return Call("log", arguments(since=since, count=count), list)


def log_end() -> Call[Any]:
    """The last entry of the log; None if there is none."""
    return Call("log", arguments(last=True), lambda reply: reply[0] if reply else None)
