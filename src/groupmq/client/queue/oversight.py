"""A queue as a whole: its stored settings, marks in its history, its server, and whether it makes progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from groupmq.client import server
from groupmq.client.answers.survey import survey_of
from groupmq.client.connection.patience import PATIENCE
from groupmq.client.queue.indexed_groups import groups_of
from groupmq.client.queue.measures import longest_waits
from groupmq.core import findings
from groupmq.core.checks import text, whole
from groupmq.core.durations import Duration, Instant, epoch_millis, instant_of, seconds
from groupmq.core.errors import ConfigurationError, QueueNotFound
from groupmq.core.queue_options import QueueArguments
from groupmq.core.server_views import Finding, Mark, ServerInfo
from groupmq.core.settings import QueueSettings, storable
from groupmq.core.survey_views import QueueSurvey
from groupmq.core.views import GroupInfo, JobCounts
from groupmq.protocol import commands
from groupmq.protocol.commands import Index

if TYPE_CHECKING:
    from groupmq.client.queue.methods import QueueMethods

LONGEST_LABEL = 200
MOST_SURVEYED = 100
_AN_HOUR = 60


async def get_settings(queue: QueueMethods) -> QueueSettings:
    """The settings that are stored with the queue, whatever this process was given."""
    stored = await queue._call(commands.look_at_queue())
    if stored.schema is None:
        await queue._call(commands.counts())  # it was removed after it was opened: open it again, or raise
        stored = await queue._call(commands.look_at_queue())
    return QueueSettings.of(stored)


async def reconfigure(queue: QueueMethods, /, **changes: Unpack[QueueArguments]) -> QueueSettings:
    """Change settings that are stored with the queue, in one write, and return the stored settings.

    `changes` are options of `Queue`; those that are stored are the fields of `QueueSettings`. Without any, the options
    that this object was given are stored. A change applies to waiting jobs too, and running processes use it from their
    next call on.

    >>> await queue.reconfigure(max_attempts=7, on_retry="yield")

    With partitions, they use it from their next call to a partition that has received it. If this is interrupted, the
    other partitions receive it from the next process that uses them. To sort waiting jobs there, make the same call
    again.
    """
    wanted = changes or storable(queue._given)
    changed = await queue._connection.reconfigure(wanted)
    if await queue._spread_settings(wanted, changed=changed):
        await queue.repair()
    return await queue.get_settings()


async def spread_settings(queue: QueueMethods, wanted: QueueArguments, *, changed: bool) -> bool:
    """Finish a change of stored settings; returns whether waiting jobs have to be put in order again.

    `changed`: whether a setting that the scripts act on has changed.
    """
    return changed


async def ensure_writable(queue: QueueMethods, timeout: Duration = PATIENCE) -> None:
    """Raise if the server cannot be reached for `timeout`, or takes no writes because it is a replica or full.

    With partitions, this checks each of their servers.
    """
    key = queue._connection.session.keys.wake_of("nobody")
    await server.ensure_writable(queue._connection, key, seconds(timeout, "timeout"))


async def survey(
    queue: QueueMethods,
    *,
    cursor: str = "0",
    also: Sequence[str] = (),
    groups: int = 20,
    runs: int = 50,
    failures: int = 50,
) -> QueueSurvey:
    """Read everything a monitor shows, in five calls however deep the queue is; nothing is written.

    Two more calls are made while groups are blocked, and two while breakers are open (three for more than 60 groups),
    and one for each further 100 jobs that run or groups that are parked. `groups`, `runs` and `failures` limit the
    length of each list. Groups are read a page at a time: pass the `cursor` of the previous survey, and in `also` those
    of its groups that should stay in view. With partitions, each of them takes that many calls.
    """
    for name, limit in (("groups", groups), ("runs", runs), ("failures", failures)):
        whole(limit, name, 0, MOST_SURVEYED)
    text(cursor, "cursor")
    counts, paused = await queue._counts()
    stats = await queue._call(commands.stats())
    _, minutes = await queue._call(commands.series(_AN_HOUR))
    found = await queue._call(commands.survey(cursor, also, groups=groups, runs=runs, failures=failures))
    # One call for each 100 jobs that run or groups that are parked, and at least one.
    waits = await longest_waits(queue._call)
    blocked = await groups_of(queue._call, "blocked", groups) if stats.blocked else []
    breakers = await groups_of(queue._call, "opened", groups) if stats.opened else []
    return survey_of(counts, stats, minutes, found, waits, blocked, breakers, paused=paused)


async def counts(queue: QueueMethods) -> tuple[JobCounts, bool]:
    """The counts, and whether the queue is paused."""
    active, waiting, delayed, completed, failed, groups, paused, *_ = await queue._call(commands.counts())
    return JobCounts(active, waiting, delayed, completed, failed, active + waiting + delayed, groups), paused == 1


async def mark(queue: QueueMethods, label: str, *, at: Instant | None = None) -> Mark:
    """Mark a moment in the history of the queue, such as a deployment; charts show it. The newest 100 are kept."""
    if len(text(label, "label")) > LONGEST_LABEL:
        raise ConfigurationError.expected("label", f"at most {LONGEST_LABEL} characters", label)
    ms = await queue._call(commands.put_mark(label, None if at is None else epoch_millis(at, "at")))
    return Mark(instant_of(ms), label)


async def get_marks(queue: QueueMethods, since: Instant | None = None) -> list[Mark]:
    """The marks from `since` on, oldest first."""
    found = await queue._call(commands.marks(None if since is None else epoch_millis(since, "since")))
    return [Mark(instant_of(ms), label) for ms, label in found]


async def check(queue: QueueMethods, *, oldest: Duration = 300, look: int = 500) -> list[Finding]:
    """The findings of `groupmq check`: whether the server is fit for a queue, and whether the queue makes progress.

    A job that waits longer than `oldest`, or a held group whose first job does, is a failure. `look`: as in
    `get_metrics`.
    """
    return await server.examine(queue._connection) + await _check_queue(queue, seconds(oldest, "oldest"), look)


async def _check_queue(queue: QueueMethods, oldest: float, look: int) -> list[Finding]:
    try:
        counts, paused = await queue._counts()
    except QueueNotFound:
        return [findings.no_queue(queue.name)]
    settings, workers = await queue.get_settings(), await queue.get_workers()
    metrics = await queue.get_metrics(_AN_HOUR, look=look)
    blocked = await _longest(queue, "blocked") if metrics.groups_blocked else None
    opened = await _longest(queue, "opened") if metrics.breakers_open else None
    return [
        findings.queue(queue.name, counts),
        findings.settings(settings),
        *await _coverage(queue, settings),
        findings.paused_queue(paused=paused),
        findings.workers(len(workers), counts, paused=paused),
        findings.oldest(metrics.oldest_startable_wait, oldest),
        findings.held(queue.name, metrics.longest_held_unpaused, oldest),
        *(
            [findings.paused_group(queue.name, metrics.longest_held, oldest)]
            if metrics.longest_held and metrics.longest_held.reason == "paused"
            else []
        ),
        findings.blocked(queue.name, metrics.groups_blocked, blocked, metrics.longest_blocked, oldest),
        *([findings.breakers(metrics.breakers_open, opened, metrics.longest_breaker_open)] if settings.breaker else []),
        findings.retention(sum(minute.retention_dropped for minute in metrics.series)),
    ]


async def _coverage(queue: QueueMethods, settings: QueueSettings) -> list[Finding]:
    if settings.partitions == 1 or not queue._connection.session.is_in_cluster:
        return []
    required = await server.config(queue._connection, "cluster-require-full-coverage")
    return [] if required is None else [findings.coverage(required)]


async def _longest(queue: QueueMethods, index: Index) -> GroupInfo | None:
    """The group that has been in the index longest, if there is one."""
    found = await queue._listed(index, 1)
    return found[0] if found else None


async def get_server_info(queue: QueueMethods) -> ServerInfo:
    """The server as it describes itself: kind, version, memory, persistence. No address, no secret."""
    return await server.describe(queue._connection)
