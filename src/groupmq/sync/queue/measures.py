# Generated from src/groupmq/client/queue/measures.py by `make sync`; do not edit.
"""Measures of a queue: counters, histograms, minutes, failures and workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupmq.client.answers.measures import failures_of, held_group, histogram, living_workers, longer
from groupmq.client.answers.spans import minutes_needed, spans
from groupmq.core.checks import whole
from groupmq.core.views import Failure, Metrics, WorkerInfo
from groupmq.protocol import commands
from groupmq.sync.queue.caller import Caller

if TYPE_CHECKING:
    from groupmq.sync.queue.methods import QueueMethods

MOST_MINUTES = 20_160
"""Two weeks; nothing older is kept."""
MOST_PAGES = 500
"""Calls that a search for the longest waits takes at most: 50,000 running jobs and as many parked groups."""
MINUTES_PER_CALL = 1_000


def get_metrics(queue: QueueMethods, minutes: int = 60, *, step: int = 1, look: int = MOST_PAGES) -> Metrics:
    """Counters, how long jobs waited and ran, and the last `minutes` (two weeks are kept).

    `step` minutes are summed up to one entry of `series`: two weeks by the hour are 336 of them. `look`: how many
    calls may look for the longest waits, each at a hundred running jobs and a hundred held groups; few calls may miss
    the longest wait of a large queue. With partitions: as many calls in each of them.
    """
    whole(minutes, "minutes", 0, MOST_MINUTES)
    whole(step, "step", 1, MOST_MINUTES)
    stats = queue._call(commands.stats())
    minute, found = _series(queue, minutes, step)
    paused = _paused_groups(queue) if stats.overrides else 0
    waits = longest_waits(queue._call, whole(look, "look", 1, MOST_PAGES))
    startable = None if waits.startable is None else waits.startable.waited_ms / 1000
    return Metrics(
        *stats.counters,
        groups_ready=stats.ready,
        groups_parked=stats.parked,
        groups_paused=paused,
        oldest_wait=startable,
        oldest_startable_wait=startable,
        longest_held=held_group(longer(waits.held, waits.paused)),
        longest_held_unpaused=held_group(waits.held),
        wait=histogram(stats.wait),
        run=histogram(stats.run),
        series=spans(minute, found, step),
        groups_blocked=stats.blocked,
        longest_blocked=max(0, stats.now - stats.blocked_since) / 1000 if stats.blocked_since else None,
        breakers_open=stats.opened,
        longest_breaker_open=max(0, stats.now - stats.opened_since) / 1000 if stats.opened_since else None,
    )


def _series(queue: QueueMethods, minutes: int, step: int) -> tuple[int, list[commands.Minute]]:
    """The last minutes, read a page at a time: as many as make up whole spans of `step`."""
    minute, found = queue._call(commands.series(min(minutes, MINUTES_PER_CALL)))
    needed = minutes_needed(minute, minutes, step)
    while len(found) < needed:
        _, earlier = queue._call(commands.series(min(needed - len(found), MINUTES_PER_CALL), minute - len(found)))
        found = [*earlier, *found]
    return minute, found[len(found) - needed :]


def _paused_groups(queue: QueueMethods) -> int:
    cursor, paused = "0", 0
    while True:
        cursor, more = queue._call(commands.count_paused(cursor))
        paused += more
        if cursor == "0":
            return paused


def get_failures(queue: QueueMethods, limit: int = 100) -> list[Failure]:
    """One record per failed attempt, newest first; the newest 1,000 are kept, in each partition."""
    return failures_of(queue._call(commands.stats(whole(limit, "limit", 0, 2**31))))


def get_workers(queue: QueueMethods) -> list[WorkerInfo]:
    """Workers that have sent a heartbeat lately."""
    return living_workers(queue._call(commands.stats()))


def longest_waits(call: Caller, calls: int = MOST_PAGES) -> commands.Waits:
    """The longest waits of the whole queue, and what each worker runs: page by page, one call for most queues."""
    first = call(commands.waits())
    startable, held, paused = first.startable, first.held, first.paused
    running, offsets = dict(first.running), first.following
    for _ in range(calls - 1):
        if not any(offsets):
            break
        page = call(commands.waits(offsets))
        startable, held = longer(startable, page.startable), longer(held, page.held)
        paused = longer(paused, page.paused)
        for worker, n in page.running.items():
            running[worker] = running.get(worker, 0) + n
        offsets = page.following
    return commands.Waits(first.now, startable, held, paused, running, offsets)
