"""A dashboard at a loopback port, with a queue and a worker whose handlers do what their jobs say."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import uvicorn

from groupmq import Backoff, Breaker, Job, Queue, Worker
from groupmq.dashboard import create_app
from tests.support.waiting import eventually

LONG = 3600.0


class _Web(uvicorn.Server):
    """A server that does not install signal handlers, which belong to the test run."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Site:
    """A dashboard behind a real server, with its queue and a worker.

    A job's data tells the handler what to do: `{"do": "stay"}` runs until `gate` is set and reports progress,
    `{"do": "fail"}` fails, anything else succeeds. A failed attempt waits an hour for the next one, so a group that is
    held stays held.
    """

    def __init__(self, redis_url: str, queue: Queue, **options: Any) -> None:
        self.queue = queue
        self.gate = asyncio.Event()
        self.audit: list[dict[str, Any]] = []
        self._options: dict[str, Any] = {"redis": redis_url, "audit": self.audit.append} | options
        self._web: _Web | None = None
        self._serving: asyncio.Task[None] | None = None
        self._worker: Worker | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def home(self) -> str:
        return f"/queues/{self.queue.name}"

    async def start(self) -> None:
        """Start to serve, after a `stop` on the same port."""
        app = create_app(**self._options)
        config = uvicorn.Config(
            app, host="127.0.0.1", port=self._port, log_level="error", timeout_graceful_shutdown=1, ws="none"
        )
        self._web = web = _Web(config)
        self._serving = asyncio.create_task(web.serve())
        await eventually(lambda: web.started, "the dashboard serves")
        self._port = web.servers[0].sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._web is None or self._serving is None:
            return
        self._web.should_exit = True
        await self._serving
        self._web = self._serving = None

    async def work(self, **options: Any) -> Worker:
        """Start a worker of the queue."""
        settings: dict[str, Any] = {"concurrency": 8, "name": "worker-1"} | options
        self._worker = Worker(self.queue, self._handle, **settings)
        await self._worker.start()
        return self._worker

    async def close(self) -> None:
        self.gate.set()
        if self._worker is not None:
            await self._worker.close(timeout=2)
        await self.stop()

    async def _handle(self, job: Job) -> Any:
        data = job.data if isinstance(job.data, dict) else {}
        await job.log(str(data.get("log", "it has begun")))
        if data.get("do") == "fail":
            raise ValueError(data.get("why", "it was told to fail"))
        if data.get("do") == "stay":
            await job.report_progress(data.get("progress", 42))
            await self.gate.wait()
        return {"ok": True, "big": 12345678901234567890}

    async def fill(self) -> None:
        """Add jobs and groups in every state. Needs the worker."""
        add = self.queue.add
        await add({"do": "fail", "why": "card 17 was declined"}, group_id="user:1", job_id="bad-1", max_attempts=1)
        await add({"do": "fail", "why": "card 18 was declined"}, group_id="user:2", job_id="bad-2", max_attempts=1)
        await add({"n": 9007199254740993}, group_id="user:1", job_id="good-1")
        await add({"do": "stay"}, group_id="user:3", job_id="runs-1")
        for n in range(4):
            await add({"n": n}, group_id="user:3", job_id=f"waits-{n}")
        await add({"do": "fail"}, group_id="user:42", job_id="holds-1", max_attempts=5)
        for n in range(3):
            await add({"n": n}, group_id="user:42", job_id=f"behind-{n}")
        await add({"n": 1}, group_id="user:5", job_id="later-1", delay=LONG)
        await self.queue.pause_group("user:9")
        await add({"n": 1}, group_id="user:9", job_id="paused-1")
        await self.states(active=1, failed=2, completed=1, delayed=1)

        async def held() -> bool:
            return (await self.queue.get_group("user:42")).state == "parked"

        await eventually(held, "user:42 is held")

    async def block(self, group_id: str) -> None:
        """Let the job `blocks-1` fail and block the group, with `blocked-1` behind it. Needs the worker."""
        options: dict[str, Any] = {"group_id": group_id, "max_attempts": 1, "on_failed": "hold"}
        await self.queue.add({"do": "fail", "why": "card 19 was declined"}, job_id="blocks-1", **options)
        await self.queue.add({"n": 1}, job_id="blocked-1", **options)

        async def blocked() -> bool:
            return (await self.queue.get_group(group_id)).blocked_by == "blocks-1"

        await eventually(blocked, f"{group_id} is blocked")

    async def break_open(self, group_id: str) -> None:
        """Open the breaker of the group with one failed job, and add a job behind it. Needs the worker."""
        await self.queue.reconfigure(breaker=Breaker(failures=1, cooldown=LONG))
        await self.queue.add({"do": "fail"}, group_id=group_id, job_id="breaks-1", max_attempts=1)
        await self.queue.add({"n": 1}, group_id=group_id, job_id="rests-1")

        async def rests() -> bool:
            held = (await self.queue.get_group(group_id)).held
            return held is not None and held.reason == "breaker"

        await eventually(rests, f"{group_id} rests")

    async def states(self, **wanted: int) -> None:
        """Wait until this many jobs are in these states."""

        async def reached() -> bool:
            counts = await self.queue.get_job_counts()
            return all(getattr(counts, state) == n for state, n in wanted.items())

        await eventually(reached, f"job counts {wanted}")


def make_queue(redis_url: str, name: str = "orders") -> Queue:
    return Queue(name, redis_url, backoff=Backoff.fixed(LONG), max_attempts=5)


@contextlib.asynccontextmanager
async def opened(redis_url: str, **options: Any) -> AsyncIterator[Site]:
    """A site that is open inside the block."""
    async with make_queue(redis_url) as queue:
        await queue.get_job_counts()
        site = Site(redis_url, queue, **options)
        await site.start()
        try:
            yield site
        finally:
            await site.close()
