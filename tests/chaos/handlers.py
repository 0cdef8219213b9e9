"""Handlers of a chaos run. A job's data says what to do: {"uid": its name, "do": how, "s": seconds, "times": attempts}.
"linger" is how many seconds a run takes that is not the first.

Every outcome names the fence of its run, in the result or in the reason of the failure, so the server's own log shows
which run's outcome it accepted.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from datetime import datetime
from functools import cache
from typing import Any

from groupmq import BatchFailed, FailJob, Job, RateLimited, RetryJob, Snooze
from tests.chaos.history import HistoryFile, digest, of_this_process


def millis(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)


def begin(history: HistoryFile, job: Job, worker: str | None = None) -> None:
    data = job.data
    history.note(
        "start",
        q=data["q"],
        job=job.id,
        uid=data["uid"],
        digest=digest(data),
        group=job.group_id,
        fence=job.fence,
        attempt=job.attempt,
        max=job.max_attempts,
        priority=job.priority,
        order=job.order_ms,
        created=millis(job.created_at),
        at=millis(job.started_at),
        worker=worker or job.worker,
    )


def end(history: HistoryFile, job: Job, how: str) -> None:
    history.note("end", q=job.data["q"], job=job.id, fence=job.fence, how=how)


def outcome(history: HistoryFile, job: Job) -> dict[str, int]:
    """The end of a run: its result, or what it raises."""
    data, fence = job.data, f"#{job.fence}"
    unusual = job.attempt <= data.get("times", 1)
    match data["do"]:
        case "fail" if unusual:
            end(history, job, "raised")
            raise ValueError(f"told to fail {fence}")
        case "again" if unusual:
            end(history, job, "retry")
            raise RetryJob(f"told to try again {fence}", delay=data["s"])
        case "give up":
            end(history, job, "gave up")
            raise FailJob(f"told to give up {fence}")
        case "limited" if job.fence % 2:
            end(history, job, "limited")
            raise RateLimited(f"told to slow down {fence}", retry_after=data["s"])
        case "snooze" if job.fence % 2:
            end(history, job, "snoozed")
            raise Snooze(data["s"], f"told to come back {fence}")
        case "poison" if unusual:
            history.note("poison", q=data["q"], job=job.id, fence=job.fence, victim=os.getpid())
            os.kill(os.getpid(), signal.SIGKILL)
    end(history, job, "returned")
    return {"fence": job.fence}


def seconds_of(job: Job) -> float:
    """How long its work takes."""
    data = job.data
    seconds: float = data.get("linger", data["s"]) if job.attempt > 1 else data["s"]
    return seconds


async def run_async(history: HistoryFile, job: Job) -> dict[str, int]:
    begin(history, job)
    data = job.data
    try:
        match data["do"]:
            case "block":
                time.sleep(data["s"])  # noqa: ASYNC251 - the loop is meant to hang
            case "talk":
                await job.report_progress({"half": True})
                await job.log("half")
            case "slow" if job.attempt <= data.get("times", 1):
                await asyncio.sleep(60)
            case _ if seconds := seconds_of(job):
                await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        end(history, job, "cancelled")
        raise
    except Exception:
        end(history, job, "raised")
        raise
    return outcome(history, job)


async def run_batch(history: HistoryFile, jobs: list[Job]) -> list[dict[str, int]]:
    """Handle the jobs one by one, like a handler that writes them in order, and always report how far it got."""
    done: list[dict[str, int]] = []
    for at, job in enumerate(jobs):
        begin(history, job)
        try:
            if job.data["s"]:
                await asyncio.sleep(job.data["s"])
        except asyncio.CancelledError:
            end(history, job, "cancelled")
            raise BatchFailed(at=at, reason=f"stopped #{job.fence}", results=done) from None
        try:
            done.append(outcome(history, job))
        except (ValueError, FailJob, Snooze) as error:
            raise BatchFailed(at=at, reason=str(error), results=done) from error
    return done


def run_in_thread(history: HistoryFile, job: Job) -> dict[str, int]:
    begin(history, job)
    data = job.data
    try:
        match data["do"]:
            case "talk":
                job.report_progress({"half": True})
                job.log("half")
            case "slow" if job.attempt <= data.get("times", 1):
                job.cancel_event.wait(60)
            case _:
                job.cancel_event.wait(seconds_of(job))
    except Exception:
        end(history, job, "raised")
        raise
    if job.cancelled:
        end(history, job, "cancelled")
        raise RuntimeError("stopped")
    return outcome(history, job)


@cache
def _history_of(pid: int) -> HistoryFile:
    return of_this_process()


def run_in_child(job: Job) -> Any:
    """For executor="process", which imports the handler by its name."""
    history = _history_of(os.getpid())
    begin(history, job)
    data = job.data
    match data["do"]:
        case "talk":
            job.report_progress({"half": True})
            job.log("half")
        case "slow" if job.attempt <= data.get("times", 1):
            time.sleep(60)
        case _:
            time.sleep(seconds_of(job))
    return outcome(history, job)
