"""Live queues for the dashboard to show: order, holds, a paused group, failures, repeats, progress, logs.

Slow on purpose: a reader should see jobs move.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Coroutine
from typing import Any, Self

from groupmq import Backoff, Cron, Every, FailJob, Job, Queue, RateLimited, Retention, Worker

USERS = 24
UNLUCKY = "user:13"
"""Its first job fails again and again, and holds the others."""
AWAY = "user:7"
"""Paused by a person."""
BUSY = "user:3"
_DEPTH = 90
"""Orders that wait or run, about."""


class CardDeclined(Exception):
    """The bank said no."""


class Show:
    """Three queues with producers and workers, in this process.

    >>> async with Show("embedded://") as show:
    ...     await show.prepare()
    ...     await show.run()
    """

    def __init__(self, redis: Any, *, seed: int = 7, pace: float = 1.0) -> None:
        self._dice = random.Random(seed)  # noqa: S311
        self._pace = pace
        """Factor for all durations: 0.1 is ten times as fast."""
        backoff = Backoff.exponential(base=12 * pace, factor=2, max=90 * pace)
        kept = Retention(count=2000)
        self.orders = Queue("orders", redis, max_attempts=5, backoff=backoff, keep_completed=kept, keep_failed=kept)
        self.emails = Queue("emails", redis, keep_completed=kept, keep_failed=kept)
        self.reports = Queue("reports", redis)
        self._n = 1000

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        for queue in (self.orders, self.emails, self.reports):
            await queue.close()

    async def run(self) -> None:
        """Run until this is cancelled."""
        await self.together(
            Worker(self.orders, self.handle_order, concurrency=8, name="orders-web-1").run(),
            Worker(self.orders, self.handle_order, concurrency=4, name="orders-web-2").run(),
            Worker(self.emails, self.handle_email, concurrency=4, name="emails-web-1").run(),
            self.keep_ordering(),
            self.keep_mailing(),
        )

    async def together(self, *works: Coroutine[Any, Any, Any]) -> None:
        async with asyncio.TaskGroup() as tasks:
            for work in works:
                tasks.create_task(work)

    async def prepare(self) -> None:
        """Add the jobs that are there from the start."""
        await self.orders.pause_group(AWAY)
        for _ in range(12):
            await self.order(AWAY)
        await self.order(UNLUCKY, fails="always")
        for _ in range(17):
            await self.order(UNLUCKY)
        for _ in range(9):
            await self.order(BUSY)
        for minutes in (2, 15, 60, 240):
            await self.order(f"user:{minutes}", delay=60 * minutes)
        await self.orders.add({"sync": "inventory"}, group_id="inventory", repeat=Every(30, key="sync-inventory"))
        nightly = Cron("0 9 * * 1-5", tz="Europe/Stockholm", key="morning-report")
        await self.orders.add({"report": "sales"}, group_id="reports", repeat=nightly)
        await self.orders.add({"sweep": "carts"}, repeat=Cron("*/15 * * * *", key="sweep-carts"))
        for n in range(6):
            await self.reports.add({"month": f"2026-{n + 1:02}"}, group_id="finance")
        await self.emails.add({"to": "ada@example.com", "template": "welcome"}, group_id="example.com")
        await self.orders.mark("v1.4")

    async def order(self, group: str, *, fails: str = "", delay: float | None = None) -> Job:
        self._n += 1
        data: dict[str, Any] = {
            "order": self._n,
            "customer": {"id": group, "name": self._dice.choice(("Ada", "Grace", "Edsger", "Barbara", "Alan"))},
            "items": [{"sku": f"A-{self._dice.randint(100, 999)}", "quantity": self._dice.randint(1, 4)}],
            "amount": self._dice.randint(99, 4999),
            "currency": "SEK",
            "trace": 90071992547409931234567890 + self._n,
        }
        if fails:
            data["fails"] = fails
        return await self.orders.add(data, group_id=group, delay=delay, max_attempts=5)

    async def keep_ordering(self) -> None:
        """Add enough orders that most customers have some waiting."""
        while True:
            if (await self.orders.get_job_counts()).total < _DEPTH:
                user = min(self._dice.randint(1, USERS), self._dice.randint(1, USERS))
                luck = self._dice.random()
                fails = "timeout" if luck < 0.05 else "card" if luck < 0.08 else "slow down" if luck < 0.09 else ""
                if f"user:{user}" not in (AWAY, UNLUCKY):
                    await self.order(f"user:{user}", fails=fails)
            await asyncio.sleep(0.15 * self._pace)

    async def keep_mailing(self) -> None:
        while True:
            domain = self._dice.choice(("example.com", "example.org", "example.net"))
            await self.emails.add({"to": f"ada@{domain}", "template": "receipt"}, group_id=domain)
            await asyncio.sleep(0.5 * self._pace)

    async def handle_order(self, job: Job) -> dict[str, Any] | None:
        if "order" not in job.data:
            await asyncio.sleep(0.5 * self._pace)
            return None
        steps = ("reserve the items", "charge the card", "write the invoice", "tell the customer")
        for done, step in enumerate(steps):
            await job.log(step)
            await asyncio.sleep(self._dice.uniform(0.3, 1.6) * self._pace)
            if done == 1:
                self.fail_if_planned(job)
            await job.report_progress({"done": done + 1, "total": len(steps)})
        return {"invoice": f"F-{job.data['order']}", "charged": job.data["amount"]}

    def fail_if_planned(self, job: Job) -> None:
        how = job.data.get("fails")
        if how == "always" or (how == "timeout" and job.attempt < 3):
            raise TimeoutError(f"payment service did not answer in {self._dice.randint(5, 10)} s")
        if how == "card":
            raise FailJob(
                f"card ending {self._dice.randint(1000, 9999)} declined: insufficient funds"
            ) from CardDeclined()
        if how == "slow down" and self._dice.random() < 0.7:
            raise RateLimited("payment service returned 429", retry_after=15 * self._pace)

    async def handle_email(self, job: Job) -> str:
        await asyncio.sleep(self._dice.uniform(0.05, 0.4) * self._pace)
        return "sent"


@contextlib.asynccontextmanager
async def running(redis: Any, *, pace: float = 1.0) -> Any:
    """Run the show for as long as the block lasts."""
    async with Show(redis, pace=pace) as show:
        await show.prepare()
        task = asyncio.ensure_future(show.run())
        try:
            yield show
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
