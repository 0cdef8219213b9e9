"""Checks of rate limits: the starts by the server's clock, and the windows with too many of them."""

from __future__ import annotations

from collections.abc import Iterable

from groupmq import Job, RateLimit


def started_ms(jobs: Iterable[Job]) -> list[int]:
    """The start times of jobs by the server's clock, in ascending order."""
    return sorted(round(job.started_at.timestamp() * 1000) for job in jobs if job.started_at is not None)


def excesses(starts: list[int], limit: RateLimit) -> list[str]:
    """Windows with more starts than the limit allows, wherever they begin. `starts`: sorted, in milliseconds."""
    count, per = limit.packed()
    return [
        f"{count + 1} starts within {last - first} ms, from {first} on"
        for first, last in zip(starts, starts[count:], strict=False)
        if last - first <= per
    ]
