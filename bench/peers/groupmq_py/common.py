"""Shared by the actions: the queue and its variants, and a handler that records lateness."""

from __future__ import annotations

import argparse
import asyncio
from datetime import datetime
from typing import Any

from groupmq import Job, Ordering, Queue, RateLimit

POLL_S = 0.001
Figures = dict[str, float]

VARIANTS: dict[str, dict[str, Any]] = {
    "none": {},
    "arrival": {"ordering": Ordering.arrival(0.02)},
    "event_time": {"ordering": Ordering.event_time(0.02)},
    "rate": {"rate_limit": RateLimit(1_000_000, per=1)},
    # This limit is above the load too, but its window is so short that the list of starts fills up and its end is read.
    "rate_full": {"rate_limit": RateLimit(1_000, per=0.01)},
    "group_rate": {"group_rate_limit": RateLimit(1_000_000, per=1)},
    "exclusive": {"exclusive": True},
    "round_robin": {"fairness": "round-robin"},
    "events": {"events": True},
    "silent": {"events": False},
}
"""Settings of the queue that scenarios compare, by name."""


def open_queue(args: argparse.Namespace, *, keep: int | None = None) -> Queue:
    user = f"{args.user}:any@" if getattr(args, "user", "") else ""
    url = f"redis://{user}127.0.0.1:{args.port}"
    kept = args.keep if keep is None else keep
    # Each process has its own retention here: a producer does not know what the worker of a scenario keeps.
    options: dict[str, Any] = {"keep_completed": kept, "keep_failed": kept, **VARIANTS[args.variant]}
    return Queue.attach(args.queue, url, make=True, **options)


def group_of(args: argparse.Namespace, index: int) -> str | None:
    """The groups in rotation, --groups of them; 0 = no groups."""
    return f"group-{index % args.groups}" if args.groups else None


async def drained(queue: Queue, pause: float = POLL_S) -> None:
    """Wait until the queue reports that nothing waits or runs."""
    while (await queue.get_job_counts()).total:  # noqa: ASYNC110 - the truth is on the server
        await asyncio.sleep(pause)


def millis(moment: datetime | None) -> int:
    """Epoch milliseconds, which is what the server's clock counts in."""
    if moment is None:
        raise ValueError("a time that was expected to be set is not")
    return round(moment.timestamp() * 1000)


class Lateness:
    """A handler that records how late each job was started, by the server's clock."""

    def __init__(self, expected: int) -> None:
        self.late_ms: dict[str, int] = {}
        self.complete = asyncio.Event()
        self._expected = expected

    async def __call__(self, job: Job) -> None:
        # The order of a delayed job is its due time, that of an occurrence its tick.
        self.late_ms[job.id] = millis(job.started_at) - job.order_ms
        if len(self.late_ms) == self._expected:
            self.complete.set()
