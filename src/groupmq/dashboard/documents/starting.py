"""Why a job of a group that is not held has not started: reasons that concern the whole queue. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupmq.dashboard.documents.record import record

if TYPE_CHECKING:
    from groupmq import RateLimit


@record
class Starting:
    reason: str
    """paused, no-worker, busy (no slot of a worker is free), rate (the queue has a rate limit) or soon."""
    words: str


def starting(*, paused: bool, workers: int, slots: int, active: int, rate_limit: RateLimit | None) -> Starting:
    """The first thing that keeps a job from starting."""
    if paused:
        return Starting(reason="paused", words="The whole queue is paused.")
    if not workers:
        return Starting(reason="no-worker", words="This queue has no worker.")
    if active >= slots:
        words = "Every slot of its workers is taken: ready jobs wait for one."
        return Starting(reason="busy", words=words)
    if rate_limit is not None:
        return Starting(reason="rate", words=f"The whole queue starts at most {rate_words(rate_limit)}.")
    return Starting(reason="soon", words="Nothing holds it: it starts as soon as a worker takes it.")


def rate_words(limit: RateLimit | None) -> str | None:
    """`100 in 1 s`."""
    if limit is None:
        return None
    per = limit.per.total_seconds() if hasattr(limit.per, "total_seconds") else limit.per
    return f"{limit.count:,} in {per:g} s"
