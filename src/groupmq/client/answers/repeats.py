"""Definitions of repeating jobs: how they are read, updated and shown, and which of their ticks are due."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from groupmq.core import record
from groupmq.core.codec import Serializer
from groupmq.core.drafts import Draft
from groupmq.core.durations import moment
from groupmq.core.errors import ConfigurationError
from groupmq.core.job_options import from_stored
from groupmq.core.partitions import carrying, place_of
from groupmq.core.schedule import Repeat, due_ticks, tick_after
from groupmq.core.views import RepeatingJob


class Definition(NamedTuple):
    """A stored definition; `lua/lib/repeats.lua` has its layout."""

    fields: dict[str, Any]
    body: bytes
    raw: bytes

    @classmethod
    def read(cls, raw: bytes) -> Definition:
        size = int.from_bytes(raw[:4], "big")
        return cls(msgspec.msgpack.decode(raw[4 : 4 + size]), raw[4 + size :], raw)

    @property
    def plan(self) -> dict[str, Any]:
        plan: dict[str, Any] = msgspec.json.decode(self.fields["plan"])
        return plan


def lacks_data(raw: bytes) -> bool:
    """Whether the data of its jobs is stored beside the definition; False for one that was damaged by hand."""
    try:
        return record.is_beside(Definition.read(raw).body)
    except (ValueError, IndexError):
        return False


def repeat_place(group_id: str | None, name: str) -> int:
    """The place of a repeat, for queues with partitions: that of its group, or without a group that of its name."""
    return place_of(name if group_id is None else group_id)


def repeat_id(group_id: str | None, name: str) -> str:
    """The id of a repeat, which every process makes from its group and name. It carries its place, for queues with
    partitions."""
    group = (group_id or "").encode()
    digest = blake2b(len(group).to_bytes(2, "big") + group + name.encode(), digest_size=9)
    return carrying(f"repeat-{digest.hexdigest()}", repeat_place(group_id, name))


def check(given: Mapping[str, Any]) -> None:
    """Refuse options that make no sense together with `repeat`."""
    for name, instead in (
        ("job_id", "its jobs get ids of their own; name the repeat with key="),
        ("order_ms", "each of its jobs is ordered by its own tick"),
        ("delay", "use start= for when it begins"),
        ("run_at", "use start= for when it begins"),
        ("dedupe", "adding the same repeat again already updates it"),
    ):
        if given.get(name) is not None:
            raise ConfigurationError(f"{name}: cannot be combined with repeat; {instead}")


def decide(schedule: Repeat, d: Draft, stored: bytes | None, now: int) -> tuple[dict[str, Any], int | None]:
    """The definition to store, and the tick to run at once, if any."""
    before = Definition.read(stored) if stored else None
    plan = schedule.plan(now, before.plan if before else None)
    first = now if before is None and schedule.immediately else None
    count, skipped = (before.fields["count"], before.fields.get("skipped", 0)) if before else (0, 0)
    # On the same grid a tick that is due and not yet run stays due.
    kept = before is not None and schedule.keeps_grid(before.plan)
    following = tick_after(plan, before.fields["next"] - 1 if before and kept else now) or 0
    if plan["limit"] is not None and count + skipped + (first is not None) >= plan["limit"]:
        following = 0
    if not following and first is None:
        raise ConfigurationError.expected("repeat", "a repeat that still ticks (see its end and limit)", schedule)
    fields = {
        "group": d.group_id or "",
        "key": schedule.name,
        "priority": d.priority,
        "ttl": d.ttl_ms or False,
        "next": following,
        "last": before.fields["last"] if before else 0,
        "count": count,
        "plan": msgspec.json.encode(plan).decode(),
    }
    if schedule.overlap == "skip":
        fields["overlap"] = "skip"
    if skipped:
        fields["skipped"] = skipped
    return fields, first


def repeating_job(definition: Definition, serializer: Serializer) -> RepeatingJob:
    fields, plan = definition.fields, definition.plan
    max_attempts, options = record.settings_of(definition.body)
    next_run = moment(fields["next"])
    assert next_run is not None  # noqa: S101 - a definition without a next tick is not stored
    return RepeatingJob(
        key=fields["key"],
        group_id=fields["group"] or None,
        schedule=plan["says"],
        next_run=next_run,
        last_run=moment(fields["last"]),
        count=fields["count"],
        limit=plan["limit"],
        end=moment(plan["end"] or 0),
        data=serializer.decode(record.data_of(definition.body)),
        priority=fields["priority"],
        max_attempts=max_attempts or None,
        **from_stored(options),
        ttl=fields["ttl"] / 1000 if fields.get("ttl") else None,
        overlap=fields.get("overlap", "allow"),
        skipped=fields.get("skipped", 0),
    )


def tick_of(rid: str, definition: Definition, now: int, *, watched: bool) -> list[Any]:
    """The ticks of a definition that are due, as `commands.tick` takes them."""
    fields = definition.fields
    # A limit counts ticks, the skipped ones among them: otherwise a skipped last tick would end the schedule early.
    count = fields["count"] + fields.get("skipped", 0)
    ticks = due_ticks(definition.plan, fields["next"], count, now, watched=watched)
    return [rid, fields["next"], ticks.next, *ticks.run]
