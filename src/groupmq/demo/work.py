"""A worker process of the demo. It writes down when each handler starts and ends, for the proof."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import sys
import time
from pathlib import Path

from groupmq import Backoff, Job, Queue, Worker

QUEUE = "demo"
LEASE = 2.0


def open_queue() -> Queue:
    """The demo's queue: a short lease, so that a killed worker's jobs come back while the demo is watched.

    A job that fails twice on purpose may be in its third run when its worker is killed, which uses an attempt.
    """
    backoff = Backoff.exponential(base=0.1, max=0.5)
    return Queue(QUEUE, "embedded://", job_timeout=LEASE, max_attempts=5, backoff=backoff, keep_completed=0)


async def work(diary: Path, concurrency: int) -> None:
    """Work until the process is ended."""
    with diary.open("a", buffering=1) as lines:

        def write(kind: str, job: Job) -> None:
            entry = {"kind": kind, "at": time.monotonic(), "n": job.data["n"], "group": job.group_id}
            lines.write(json.dumps(entry | {"attempt": job.attempt, "delayed": job.data["delayed"]}) + "\n")

        async def handle(job: Job) -> None:
            write("start", job)
            await asyncio.sleep(random.uniform(0.002, 0.03))  # noqa: S311
            if job.attempt <= job.data["failures"]:
                write("fail", job)
                raise RuntimeError("this job fails on purpose")
            write("end", job)

        async with open_queue() as queue:
            await Worker(queue, handle, concurrency=concurrency).run()


if __name__ == "__main__":
    logging.getLogger("groupmq").setLevel(logging.ERROR)  # the demo itself reports the kill
    asyncio.run(work(Path(sys.argv[1]), int(sys.argv[2])))
