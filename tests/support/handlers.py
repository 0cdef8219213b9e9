"""Handlers that another process can import by name, for `executor="process"`."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable
from pathlib import Path

from groupmq import FailJob, Job, RateLimited, RetryJob, Snooze


def square(job: Job) -> dict[str, int]:
    return {"square": job.data**2, "pid": os.getpid()}


def sleep(job: Job) -> int:
    time.sleep(job.data)
    return os.getpid()


def limited_once(job: Job) -> None:
    """Raise RateLimited the first time. No attempt is used, so a file, whose path is the data, tells the runs apart."""
    try:
        Path(job.data).touch(exist_ok=False)
    except FileExistsError:
        return
    raise RateLimited("429", retry_after=0.1)


def snoozes_once(job: Job) -> None:
    """Snooze the first time. A file, whose path is the data, records that."""
    try:
        Path(job.data).touch(exist_ok=False)
    except FileExistsError:
        return
    raise Snooze(0.1)


def by_word(job: Job) -> object:
    """Do what the data says."""
    match job.data:
        case "fail":
            raise FailJob("no use")
        case "retry" if job.attempt == 1:
            raise RetryJob("once more", delay=0.01)
        case "raise":
            raise ValueError("broken")
        case "exit":
            os._exit(7)
        case "system-exit":
            raise SystemExit(3)
        case "unsendable":
            return lambda: None
    return os.getpid()


def tell(job: Job) -> str:
    """Report the progress and log the lines of the data, from a handler that cannot await."""
    for value in job.data["progress"]:
        job.report_progress(value)
    for line in job.data["lines"]:
        job.log(line)
    return "told"


def sleep_and_mark(job: Job) -> None:
    """Write a file with the id of this process at the start, and a second one only if it is not killed."""
    path, seconds = job.data
    Path(path).write_text(str(os.getpid()), encoding="utf-8")
    time.sleep(seconds)
    Path(path + ".ended").touch()


async def _doubled(job: Job) -> int:
    return 2 * int(job.data)


def later(job: Job) -> Awaitable[int]:
    return _doubled(job)
