"""Repeating jobs, without I/O: definitions are read, decided upon here, and written back if nobody else did."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from groupmq.client.operations import Operations, Steps
from groupmq.core import record
from groupmq.core import schedule as repeat
from groupmq.core.backoff import Backoff
from groupmq.core.checks import text
from groupmq.core.drafts import Draft, draft
from groupmq.core.durations import moment
from groupmq.core.errors import ConfigurationError
from groupmq.core.schedule import Repeat, due_ticks, tick_after
from groupmq.core.snapshot import Snapshot
from groupmq.core.views import RepeatingJob
from groupmq.protocol import commands

J = TypeVar("J", bound=Snapshot)
TICKS_PER_CALL = 25


class Definition(NamedTuple):
    """A stored definition, `lua/lib/repeats.lua`."""

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


class Ran(NamedTuple):
    """What a look at the schedule did."""

    added: int
    now: int
    wait_ms: int
    """Until the next tick; -1 = there is none."""
    errors: list[str]


def repeat_id(group_id: str | None, name: str) -> str:
    """The same for the same group and name, in whatever process."""
    group = (group_id or "").encode()
    digest = blake2b(len(group).to_bytes(2, "big") + group + name.encode(), digest_size=9)
    return f"repeat-{digest.hexdigest()}"


def check(given: Mapping[str, Any]) -> None:
    """What makes no sense together with `repeat`."""
    for name, instead in (
        ("job_id", "its jobs get ids of their own; name the repeat with key="),
        ("order_ms", "each of its jobs is ordered by its own tick"),
        ("delay", "say when it begins with start="),
        ("run_at", "say when it begins with start="),
        ("dedupe", "adding the same repeat again already updates it"),
    ):
        if given.get(name) is not None:
            raise ConfigurationError(f"{name}: cannot be combined with repeat; {instead}")


class Repeating(Generic[J]):
    """What a queue can do with repeating jobs."""

    def __init__(self, operations: Operations[J]) -> None:
        self._operations = operations
        self._options = operations.options

    def add(self, data: Any, repeat_given: object, **given: Any) -> Steps[J]:
        """Define a repeating job, or update the one of this group and name. Returns its next occurrence."""
        schedule = repeat.checked(repeat_given)
        check(given)
        # An order of its own is what each occurrence has: its tick.
        d = draft(self._options, data, **{**given, "order_ms": 0})
        rid = repeat_id(d.group_id, schedule.name)
        while True:
            looked: commands.Repeats = yield commands.repeats_of([rid])
            stored = looked.found.get(rid)
            fields, first = self._decide(schedule, d, stored, looked.now)
            if (yield commands.define(rid, stored or b"", fields, d.body, first)):
                break
        tick = first if first is not None else fields["next"]
        job = self._operations.make(
            f"{rid}:{tick}",
            "waiting" if first is not None else "delayed",
            record.Record(d.priority, tick, 0, looked.now, d.max_attempts, True, d.group_id, d.options or {}, d.data),
        )
        if first is None:
            job._run_at_ms = tick
        return job

    def _decide(self, schedule: Repeat, d: Draft, stored: bytes | None, now: int) -> tuple[dict[str, Any], int | None]:
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

    def remove(self, group_id: str | None, repeat_or_key: object) -> Steps[bool]:
        """Remove a definition; what it has added stays. False if there is none."""
        group = None if group_id is None else text(group_id, "group_id")
        if isinstance(repeat_or_key, str):
            name = text(repeat_or_key, "repeat_or_key")
        else:
            name = repeat.checked(repeat_or_key, "repeat_or_key").name
        rid = repeat_id(group, name)
        while True:
            looked: commands.Repeats = yield commands.repeats_of([rid])
            stored = looked.found.get(rid)
            if stored is None:
                return False
            if (yield commands.undefine(rid, stored)):
                return True

    def get_all(self) -> Steps[list[RepeatingJob]]:
        """All definitions, the next one to run in front."""
        found: dict[str, bytes] = {}
        cursor = "0"
        while True:
            page: commands.Repeats = yield commands.repeats_page(cursor)
            found |= page.found
            cursor = page.cursor
            if cursor == "0":
                break
        jobs = []
        for raw in found.values():
            # One that was damaged by hand is repair's business; the others can still be told.
            with contextlib.suppress(Exception):
                jobs.append(self._view(Definition.read(raw)))
        return sorted(jobs, key=lambda job: (job.next_run, job.group_id or "", job.key))

    def _view(self, definition: Definition) -> RepeatingJob:
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
            data=self._options.serializer.decode(record.data_of(definition.body)),
            priority=fields["priority"],
            max_attempts=max_attempts or None,
            timeout=options["t"] / 1000 if "t" in options else None,
            backoff=Backoff.unpacked(options["b"]) if "b" in options else None,
            on_retry=("yield" if options["y"] else "hold") if "y" in options else None,
            ttl=fields["ttl"] / 1000 if fields.get("ttl") else None,
            overlap=fields.get("overlap", "allow"),
            skipped=fields.get("skipped", 0),
        )

    def run_due(self, watched_since: int | None = None) -> Steps[Ran]:
        """Add the occurrences of every tick that is due. `watched_since`: when this scheduler looked last, if it did.

        Any number of schedulers may do this at once: of each tick exactly one of them makes a job.
        """
        added, watched = 0, watched_since is not None
        while True:
            due: commands.Repeats = yield commands.repeats_due()
            ticks: list[list[Any]] = []
            errors: list[str] = []
            for rid, raw in due.found.items():
                try:
                    ticks.append(self._tick(rid, Definition.read(raw), due.now, watched=watched))
                except Exception as error:
                    # One that cannot be read here (a zone this machine does not know) must not stop the others.
                    errors.append(f"repeat {rid}: {type(error).__name__}: {error}")
            if not ticks:
                return Ran(added, due.now, due.wait_ms, errors)
            for at in range(0, len(ticks), TICKS_PER_CALL):
                ticked: commands.Ticked = yield commands.tick(ticks[at : at + TICKS_PER_CALL])
                added += ticked.added
            watched = True

    def _tick(self, rid: str, definition: Definition, now: int, *, watched: bool) -> list[Any]:
        fields = definition.fields
        # A limit counts ticks, the skipped ones among them: otherwise a skipped last tick would end the schedule early.
        count = fields["count"] + fields.get("skipped", 0)
        ticks = due_ticks(definition.plan, fields["next"], count, now, watched=watched)
        return [rid, fields["next"], ticks.next, *ticks.run]
