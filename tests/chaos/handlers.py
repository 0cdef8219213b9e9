"""What the jobs of a chaos run do, told by their data: {"uid": who it is, "do": how, "s": seconds, "times": attempts}.

Every outcome names the fence of its run, in the result or in the reason of the failure, so the server's own log says
whose outcome it has accepted.
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
from tests.chaos.diary import Diary, digest, of_this_process


def millis(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)


def begin(diary: Diary, job: Job, worker: str | None = None) -> None:
    data = job.data
    diary.note(
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


def end(diary: Diary, job: Job, how: str) -> None:
    diary.note("end", q=job.data["q"], job=job.id, fence=job.fence, how=how)


def outcome(diary: Diary, job: Job) -> dict[str, int]:
    """The end of a run: its result, or what it raises."""
    data, fence = job.data, f"#{job.fence}"
    unusual = job.attempt <= data.get("times", 1)
    match data["do"]:
        case "fail" if unusual:
            end(diary, job, "raised")
            raise ValueError(f"told to fail {fence}")
        case "again" if unusual:
            end(diary, job, "retry")
            raise RetryJob(f"told to try again {fence}", delay=data["s"])
        case "give up":
            end(diary, job, "gave up")
            raise FailJob(f"told to give up {fence}")
        case "limited" if job.fence % 2:
            end(diary, job, "limited")
            raise RateLimited(f"told to slow down {fence}", retry_after=data["s"])
        case "snooze" if job.fence % 2:
            end(diary, job, "snoozed")
            raise Snooze(data["s"], f"told to come back {fence}")
        case "poison" if unusual:
            diary.note("poison", q=data["q"], job=job.id, fence=job.fence, victim=os.getpid())
            os.kill(os.getpid(), signal.SIGKILL)
    end(diary, job, "returned")
    return {"fence": job.fence}


async def run_async(diary: Diary, job: Job) -> dict[str, int]:
    begin(diary, job)
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
            case _ if data["s"]:
                await asyncio.sleep(data["s"])
    except asyncio.CancelledError:
        end(diary, job, "cancelled")
        raise
    except Exception:
        end(diary, job, "raised")
        raise
    return outcome(diary, job)


async def run_batch(diary: Diary, jobs: list[Job]) -> list[dict[str, int]]:
    """One job after the other, as a handler does that writes them in order. It always says how far it came."""
    done: list[dict[str, int]] = []
    for at, job in enumerate(jobs):
        begin(diary, job)
        try:
            if job.data["s"]:
                await asyncio.sleep(job.data["s"])
        except asyncio.CancelledError:
            end(diary, job, "cancelled")
            raise BatchFailed(at=at, reason=f"stopped #{job.fence}", results=done) from None
        try:
            done.append(outcome(diary, job))
        except (ValueError, FailJob) as error:
            raise BatchFailed(at=at, reason=str(error), results=done) from error
    return done


def run_in_thread(diary: Diary, job: Job) -> dict[str, int]:
    begin(diary, job)
    data = job.data
    try:
        match data["do"]:
            case "talk":
                job.report_progress({"half": True})
                job.log("half")
            case "slow" if job.attempt <= data.get("times", 1):
                job.cancel_event.wait(60)
            case _:
                job.cancel_event.wait(data["s"])
    except Exception:
        end(diary, job, "raised")
        raise
    if job.cancelled:
        end(diary, job, "cancelled")
        raise RuntimeError("stopped")
    return outcome(diary, job)


@cache
def _diary_of(pid: int) -> Diary:
    return of_this_process()


def run_in_child(job: Job) -> Any:
    """For executor="process": found by its name."""
    diary = _diary_of(os.getpid())
    begin(diary, job)
    data = job.data
    match data["do"]:
        case "talk":
            job.report_progress({"half": True})
            job.log("half")
        case "slow" if job.attempt <= data.get("times", 1):
            time.sleep(60)
        case _:
            time.sleep(data["s"])
    return outcome(diary, job)
