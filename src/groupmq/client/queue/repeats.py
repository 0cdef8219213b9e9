"""Repeating jobs. A definition is read, changed here, and written back unless another process has changed it since."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from groupmq.client.answers import repeats
from groupmq.client.answers.repeats import Definition, repeat_id, repeating_job
from groupmq.client.job import Job
from groupmq.core import schedule as schedules
from groupmq.core.checks import text
from groupmq.core.drafts import draft
from groupmq.core.record import Record
from groupmq.core.schedule import Repeat
from groupmq.core.views import RepeatingJob
from groupmq.protocol import commands

if TYPE_CHECKING:
    from groupmq.client.queue.methods import QueueMethods


async def add_repeating(
    queue: QueueMethods, data: Any, repeat: object, headers: dict[str, str] | None, **options: Any
) -> Job:
    """Define a repeating job, or update the one of this group and name. Returns its next occurrence."""
    schedule = schedules.checked(repeat)
    repeats.check(options)
    # Each occurrence has its own order: its tick.
    d = draft(queue.options, data, headers, **{**options, "order_ms": 0})
    rid = repeat_id(d.group_id, schedule.name)
    while True:
        looked = await queue._call(commands.repeats_of([rid]))
        stored = looked.found.get(rid)
        fields, first = repeats.decide(schedule, d, stored, looked.now)
        if await queue._call(commands.define(rid, stored or b"", fields, d.body, first)):
            break
    tick = first if first is not None else fields["next"]
    job = queue._make_job(
        f"{rid}:{tick}",
        "waiting" if first is not None else "delayed",
        Record(d.priority, tick, 0, looked.now, d.max_attempts, True, d.group_id, d.options or {}, d.data),
    )
    if first is None:
        job._run_at_ms = tick
    return job


async def remove_repeating_job(queue: QueueMethods, group_id: str | None, repeat_or_key: Repeat | str) -> bool:
    """Stop a repeating job; jobs that it has added already stay. False if there is no such repeat."""
    group = None if group_id is None else text(group_id, "group_id")
    if isinstance(repeat_or_key, str):
        name = text(repeat_or_key, "repeat_or_key")
    else:
        name = schedules.checked(repeat_or_key, "repeat_or_key").name
    rid = repeat_id(group, name)
    while True:
        looked = await queue._call(commands.repeats_of([rid]))
        stored = looked.found.get(rid)
        if stored is None:
            return False
        if await queue._call(commands.undefine(rid, stored)):
            return True


async def get_repeating_jobs(queue: QueueMethods) -> list[RepeatingJob]:
    """Repeating jobs, the next to tick first; each with its next tick, its last one, and their number so far."""
    found: dict[str, bytes] = {}
    cursor = "0"
    while True:
        page = await queue._call(commands.repeats_page(cursor))
        found |= page.found
        cursor = page.cursor
        if cursor == "0":
            break
    jobs = []
    for rid, raw in found.items():
        whole = await queue._call(commands.whole_repeat(rid)) if repeats.lacks_data(raw) else raw
        # A definition that was damaged by hand is mended by repair(); the others can still be listed.
        with contextlib.suppress(Exception):
            jobs.append(repeating_job(Definition.read(whole), queue.options.serializer))
    return sorted(jobs, key=lambda job: (job.next_run, job.group_id or "", job.key))
