"""A worker process whose handler does what the data of each job says: `python -m tests.support.worker_process JSON`.

It records runs and events as JSON lines in a file that all processes share (see history.py), and exits when its
standard input is closed, so that it never outlives the test that started it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from groupmq import Job, Ordering, Queue, RateLimit, Worker
from tests.support.handlers import sleep_and_mark
from tests.support.parts import parts_of
from tests.support.workers import watching


class HistoryFile:
    """Appends lines to the history, with one write for each, so that lines of several processes never mix."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(self, kind: str, job: Job | None = None, **more: Any) -> None:
        line: dict[str, Any] = {"kind": kind, "t": time.monotonic(), "pid": os.getpid(), **more}
        if job is not None:
            line |= {"job": job.id, "group": job.group_id, "fence": job.fence, "order": job.order_ms}
            n = job.data.get("n") if isinstance(job.data, dict) else None
            line |= {"n": n, "at": job.started_at and round(job.started_at.timestamp() * 1000)}
            line.setdefault("attempt", job.attempt)
        os.write(self._file, json.dumps(line).encode() + b"\n")


def block(seconds: float, until: str | None) -> None:
    """Hang the event loop."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not (until and os.path.exists(until)):
        time.sleep(0.01)


async def work(job: Job) -> str:
    """Do what `job.data` asks for: {"do": how, "seconds": how long, "times": on how many attempts}. A handler that
    blocks goes on when a test has made the file "until", or after "seconds" at the latest."""
    data = job.data
    seconds, unusual = data.get("seconds", 0.0), job.attempt <= data.get("times", 1)
    match data.get("do", "work"):
        case "block":
            time.sleep(seconds)  # noqa: ASYNC251 - the loop is meant to hang
        case "block-once" if unusual:
            block(seconds, data.get("until"))
        case "exit" if unusual:
            os._exit(13)
        case "fail" if unusual:
            raise ValueError("told to fail")
        case "work":
            await asyncio.sleep(seconds)
        case "work-once" if unusual:
            await asyncio.sleep(seconds)
        case "talk":
            for n in range(data["times"]):
                await job.report_progress({"done": n})
                await job.log(f"line {n}")
                await asyncio.sleep(seconds)
    return job.id


def read_options(told: dict[str, Any]) -> dict[str, Any]:
    """The options of a queue, rebuilt from the output of `described`."""
    options = dict(told)
    for name in ("rate_limit", "group_rate_limit"):
        if options.get(name):
            options[name] = RateLimit(**options[name])
    if options.get("ordering"):
        window = dict(options["ordering"])
        options["ordering"] = getattr(Ordering, window.pop("kind"))(**window)
    return options


async def main(settings: dict[str, Any]) -> None:
    history = HistoryFile(settings["history"])

    async def handle(job: Job) -> str:
        history.note("start", job)
        how = "raised"
        try:
            value = await work(job)
            how = "returned"
            return value
        except asyncio.CancelledError:
            how = "cancelled"
            raise
        finally:
            history.note("end", job, how=how)

    def handle_in_thread(job: Job) -> None:
        history.note("start", job)
        time.sleep(job.data["seconds"])
        history.note("end", job, how="returned")

    def handle_until_told(job: Job) -> None:
        history.note("start", job)
        told = job.cancel_event.wait(job.data["seconds"])
        history.note("end", job, how="told" if told and job.cancelled else "returned")

    async def handle_batch(jobs: list[Job]) -> None:
        for job in jobs:
            history.note("start", job, batch=[one.id for one in jobs])
        await asyncio.sleep(max(job.data["seconds"] if job.attempt == 1 else 0.0 for job in jobs))
        for job in jobs:
            history.note("end", job, how="returned")

    handlers: dict[str, Callable[[Any], Any]] = {
        "batch": handle_batch,
        "async": handle,
        "thread": handle_in_thread,
        "thread that looks": handle_until_told,
        "process": sleep_and_mark,
    }
    async with Queue(settings["queue"], settings["url"], **read_options(settings["queue_options"])) as queue:
        worker = Worker(queue, handlers[settings.get("handler", "async")], **settings["worker_options"])
        for event in ("active", "completed", "retrying", "failed", "lease-lost", "graceful-timeout"):
            worker.on(event, lambda job, *_, event=event: history.note(event, job, attempt=job.attempts_made))
        if settings.get("short_handlers"):
            # On a busy machine a handler may seem slow now and then; keep this worker from adapting to that.
            worker.on("active", lambda job: setattr(parts_of(worker).dispatcher._prefetch, "typical", 1e-5))
        for event in ("ready", "closed"):
            worker.on(event, lambda event=event: history.note(event))
        worker.on("stalled", lambda job_id, group_id: history.note("stalled", stalled=job_id))
        worker.on("error", lambda error: history.note("error", error=f"{type(error).__name__}: {error}"))

        async def leave() -> None:
            await worker.close(timeout=settings["close_timeout"])

        async def watch() -> None:
            await watching(worker)
            history.note("watching")

        tasks: set[asyncio.Task[None]] = set()
        loop = asyncio.get_running_loop()
        if worker._options.maintenance:
            worker.on("ready", lambda: tasks.add(loop.create_task(watch())))
        loop.add_signal_handler(signal.SIGTERM, lambda: tasks.add(loop.create_task(leave())))
        await worker.run()


def die_with_parent() -> None:
    """Exit when the parent does, which closes standard input. Read unbuffered: a buffer's lock could block the exit."""
    with contextlib.suppress(OSError):
        os.read(0, 1)
    os._exit(14)


if __name__ == "__main__":
    threading.Thread(target=die_with_parent, daemon=True).start()
    asyncio.run(main(json.loads(sys.argv[1])))
