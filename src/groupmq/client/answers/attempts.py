"""The attempts of a job, made from its stored history, its state and its lease."""

from __future__ import annotations

from typing import cast

from groupmq.core.durations import moment
from groupmq.core.pages import Attempt, AttemptOutcome
from groupmq.protocol import commands


def attempts_of(found: commands.Attempts) -> list[Attempt]:
    """The runs of a job, oldest first: those that are stored, and the one that its state or its lease describes."""
    stored = found.stored
    attempts = [attempt_of(kept) for kept in found.history]
    last = found.history[-1].fence if found.history else 0
    if found.history and stored.fence == last and stored.stack and not stored.finished:
        attempts[-1] = attempt_of(found.history[-1]._replace(reason=stored.reason, stack=stored.stack))
    if stored.finished and stored.fence and stored.fence != last:
        outcome = "completed" if found.state == "completed" else failed_outcome(stored)
        attempts.append(
            attempt_of(
                commands.StoredAttempt(
                    stored.attempts,
                    outcome,
                    stored.error,
                    stored.reason,
                    stored.stack,
                    stored.worker,
                    stored.started,
                    stored.finished,
                    stored.fence,
                )
            )
        )
    if found.run is not None:
        started, number, worker = found.run
        attempts.append(Attempt(number, "running", None, None, None, worker, moment(started), None, None))
    return attempts


def attempt_of(kept: commands.StoredAttempt) -> Attempt:
    return Attempt(
        kept.number,
        cast(AttemptOutcome, kept.outcome),
        kept.error or None,
        kept.reason or None,
        kept.stack or None,
        kept.worker or None,
        moment(kept.started),
        moment(kept.ended),
        max(0, kept.ended - kept.started) / 1000,
    )


def failed_outcome(stored: commands.StoredState) -> str:
    """The outcome of the run that failed a job for good; the same decision as in `lua/lib/history.lua`."""
    if stored.error:
        return "failed"
    if stored.reason == "cancelled":
        return "cancelled"
    return "stalled" if stored.reason.startswith("stalled:") else "failed"
