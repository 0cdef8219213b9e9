"""Whether the server is fit for a queue, and whether the queue makes progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupmq.client import server
from groupmq.client.connection.patience import PATIENCE
from groupmq.core import findings
from groupmq.core.durations import Duration, seconds
from groupmq.core.errors import QueueNotFound
from groupmq.core.server_views import Finding, ServerInfo
from groupmq.core.settings import QueueSettings
from groupmq.core.views import GroupInfo
from groupmq.protocol.commands import Index

if TYPE_CHECKING:
    from groupmq.client.queue.methods import QueueMethods

_AN_HOUR = 60


async def ensure_writable(queue: QueueMethods, timeout: Duration = PATIENCE) -> None:
    """Raise if the server cannot be reached for `timeout`, or takes no writes because it is a replica or full.

    With partitions, this checks each of their servers.
    """
    key = queue._connection.session.keys.wake_of("nobody")
    await server.ensure_writable(queue._connection, key, seconds(timeout, "timeout"))


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
