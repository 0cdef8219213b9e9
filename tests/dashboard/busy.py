"""A queue with everything that a page can show."""

from __future__ import annotations

import asyncio
from typing import Any

from groupmq import Cron, Every, FailJob, Job, Queue, Worker
from tests.support.waiting import eventually

HELD, PAUSED, RUNNING, DEEP = "user:held", "user:paused", "user:running", "user:deep"


class Busy:
    """A queue with jobs in every state. `secret` is in data, results, progress, errors, stacks, logs and headers."""

    def __init__(self, queue: Queue, *, secret: str = "hunter2", group: str = "") -> None:
        self.queue = queue
        self.secret = secret
        self._suffix = group
        self._worker: Worker | None = None
        self._hold = asyncio.Event()
        self.ids: dict[str, str] = {}

    def group(self, name: str) -> str:
        return name + self._suffix

    async def start(self) -> None:
        queue = self.queue
        await queue.pause_group(self.group(PAUSED))
        for name, group, how in (
            ("completed", "user:done", "complete"),
            ("failed", "user:failed", "fail"),
            ("held", HELD, "raise"),
            ("active", RUNNING, "hold"),
        ):
            job = await queue.add(self.data(how), group_id=self.group(group))
            self.ids[name] = job.id
        for name, group in (("behind", HELD), ("behind2", HELD), ("paused", PAUSED), ("waiting", RUNNING)):
            self.ids[name] = (await queue.add(self.data("complete"), group_id=self.group(group))).id
        self.ids["delayed"] = (await queue.add(self.data("complete"), group_id=self.group(DEEP), delay=3600)).id
        await queue.add(self.data("complete"), group_id=self.group(DEEP), repeat=Every(3600, key="hourly"))
        await queue.add(self.data("complete"), repeat=Cron("0 9 * * 1-5", tz="Europe/Stockholm", key="morning"))
        await queue.mark("v1.4")
        self._worker = Worker(queue, self.handle, concurrency=4, name="web-1")
        await self._worker.start()
        await eventually(self._is_ready, "every job of the busy queue is in its state")

    async def _is_ready(self) -> bool:
        counts = await self.queue.get_job_counts()
        held = await self.queue.get_job(self.ids["held"])
        progress = await self.queue.get_job(self.ids["active"])
        return (
            (counts.completed, counts.failed, counts.active) == (1, 1, 1)
            and held is not None
            and held.attempts_made == 1
            and progress is not None
            and progress.progress is not None
        )

    async def stop(self) -> None:
        self._hold.set()
        if self._worker is not None:
            await self._worker.close()

    def data(self, how: str) -> dict[str, Any]:
        return {"how": how, "password": self.secret, "amount": 999}

    async def handle(self, job: Job) -> Any:
        await job.log(f"password={self.secret} was used")
        match job.data["how"]:
            case "fail":
                raise FailJob(f"password={self.secret} is wrong")
            case "raise":
                raise TimeoutError(f"no answer for password={self.secret} in 10 s")
            case "hold":
                await job.report_progress({"done": 1, "total": 4, "password": self.secret})
                await self._hold.wait()
        return {"ok": True, "password": self.secret}
