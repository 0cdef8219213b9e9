"""The process that loads the queues: it adds jobs at a steady rate, waits for some results, defines and removes
repeating jobs, and performs administrative actions now and then."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
import time
from collections import Counter
from contextlib import AsyncExitStack
from random import Random
from typing import Any

from groupmq import Every, GroupMQError, Job, Queue
from tests.soak.jobs import JobMaker, filling
from tests.soak.pulse import Pulse
from tests.soak.queues import PARTS, QUEUES, SHARES, open_queue

TICK = 0.2
AWAITED, MOST_AWAITED, PATIENCE = 0.03, 40, 20.0
REPEATS, REPEAT_LIFE = 4, 10.0
SURGERY = 4.0
SKIP = 3.0
FILL_WITHIN = 90.0


class Producer:
    def __init__(self, settings: dict[str, Any], queues: dict[str, Queue]) -> None:
        self._queues = queues
        self._rate: float = settings["rate"]
        self._random = Random(settings["seed"])
        self._maker = JobMaker(settings["seed"], self._rate)
        self._began = time.monotonic()
        self._counted: Counter[str] = Counter()
        self._awaiting: set[asyncio.Task[None]] = set()
        self._heard: Counter[str] = Counter()

    @property
    def _now(self) -> float:
        return time.monotonic() - self._began

    async def fill(self) -> None:
        """Fill everything that is bounded by a count, which would take an hour with this load alone."""
        for name, queue in self._queues.items():
            await queue.add_many(filling(PARTS[name]))
        for queue in self._queues.values():
            skipping = asyncio.ensure_future(self.skip())
            await queue.wait_for_empty(timeout=FILL_WITHIN)
            skipping.cancel()
        self._counted["filled"] = 1

    async def load(self, over: asyncio.Event) -> None:
        """Add jobs at the given rate. After a delay up to one second's worth of adds is made up for."""
        last, owed = self._now, 0.0
        while not over.is_set():
            now = self._now
            owed, last = min(owed + (now - last) * self._rate, self._rate), now
            n, owed = int(owed), owed - int(owed)
            by_queue = Counter(self._random.choices(list(SHARES), list(SHARES.values()), k=n))
            await asyncio.gather(*(self._add(name, count, now) for name, count in by_queue.items()))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), TICK)

    async def _add(self, name: str, n: int, now: float) -> None:
        queue, items = self._queues[name], [self._maker.item(name, now) for _ in range(n)]
        half = n // 2
        with self._errors():
            jobs = await queue.add_many(items[:half]) if half else []
            jobs += await asyncio.gather(*(queue.add(**item) for item in items[half:]))
            self._counted["added"] += sum(not job.duplicate for job in jobs)
            for job in jobs:
                if self._random.random() < AWAITED and len(self._awaiting) < MOST_AWAITED:
                    task = asyncio.ensure_future(self._await(job))
                    self._awaiting.add(task)
                    task.add_done_callback(self._awaiting.discard)

    async def _await(self, job: Job) -> None:
        try:
            await job.result(timeout=PATIENCE)
            self._counted["results"] += 1
        except (GroupMQError, TimeoutError):
            self._counted["no result"] += 1

    async def listen(self) -> None:
        async for event in self._queues["flow"].events():
            self._heard[event.kind] += 1

    async def repeat(self) -> None:
        """Define new repeating jobs all the time, and remove the oldest."""
        names: list[tuple[str, str]] = []
        queue = self._queues["flow"]
        for n in itertools.count():
            with self._errors():
                key, group = f"repeat-{n}", f"ticks-{n}"
                await queue.add({"do": "work", "s": 0}, group_id=group, repeat=Every(1, key=key))
                names.append((group, key))
                if len(names) > REPEATS:
                    await queue.remove_repeating_job(*names.pop(0))
            await asyncio.sleep(REPEAT_LIFE)

    async def skip(self) -> None:
        """Skip the jobs that block their groups."""
        while True:
            with self._errors():
                for group in await self._queues["strict"].get_blocked_groups(50):
                    if group.blocked_by is not None:
                        await self._queues["strict"].skip(group.blocked_by)
            await asyncio.sleep(SKIP)

    async def operate(self, over: asyncio.Event) -> None:
        """Perform actions until `over`. The current action is always finished, so that nothing stays paused."""
        for n in itertools.count():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), SURGERY)
            if over.is_set():
                return
            queue = self._queues[self._random.choice(list(QUEUES))]
            with self._errors():
                await self._surgery(queue, n)
                self._counted["surgeries"] += 1

    async def _surgery(self, queue: Queue, n: int) -> None:
        group = self._maker.group(self._now)
        match n % 12:
            case 0:
                await queue.clean("completed", grace=1, limit=200)
            case 1:
                await queue.clean("failed", limit=50)
            case 2:
                await queue.pause()
                await asyncio.sleep(0.3)
                await self._insist(queue.resume)
            case 3:
                await queue.pause_group(group)
                await self._insist(lambda: queue.resume_group(group))
            case 4:
                await queue.set_group_concurrency(group, 3)
                await self._insist(lambda: queue.set_group_concurrency(group, None))
            case 5:
                await queue.retry_many(limit=20)
            case 6:
                await queue.purge(("delayed",))
            case 7:
                self._counted["mended"] += (await queue.repair()).total
            case 8:
                for job_id in await queue.get_job_ids("waiting", 5):
                    await queue.remove(job_id)
            case 9:
                await queue.cancel_group(group)
            case 10:
                await queue.get_metrics(minutes=60)
                await queue.get_groups(limit=50)
                await queue.get_failure_groups(20)
            case _:
                for job_id in await queue.get_job_ids("active", 2):
                    await queue.cancel(job_id)

    async def _insist(self, call: Any) -> None:
        """Retry until the call is acknowledged: anything that stays paused would look like a growing backlog."""
        while True:
            try:
                await call()
                return
            except GroupMQError:
                await asyncio.sleep(0.2)

    @contextlib.contextmanager
    def _errors(self) -> Any:
        try:
            yield
        except GroupMQError:
            self._counted["errors"] += 1

    async def status(self) -> dict[str, Any]:
        counts = [await queue.get_job_counts() for queue in self._queues.values()]
        metrics = [await queue.get_metrics(minutes=1, look=1) for queue in self._queues.values()]
        return {
            "backlog": sum(count.total for count in counts),
            "groups": sum(count.unique_groups for count in counts),
            "completed": sum(metric.completed for metric in metrics),
            "failed": sum(metric.failed for metric in metrics),
            "retried": sum(metric.retried for metric in metrics),
            "stalled": sum(metric.stalled for metric in metrics),
            "awaiting": len(self._awaiting),
            "heard": self._heard.total(),
            **self._counted,
        }

    async def drain(self) -> None:
        """After SIGTERM: remove the repeating jobs and wait until the queues are empty. The pulse continues."""
        for repeating in await self._queues["flow"].get_repeating_jobs():
            await self._queues["flow"].remove_repeating_job(repeating.group_id, repeating.key)
        skipping = asyncio.ensure_future(self.skip())
        for queue in self._queues.values():
            await queue.wait_for_empty(timeout=60)
        skipping.cancel()
        await asyncio.gather(*self._awaiting, return_exceptions=True)


async def produce(settings: dict[str, Any]) -> None:
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    async with AsyncExitStack() as stack:
        names = {name: await stack.enter_async_context(open_queue(name, settings["url"])) for name in QUEUES}
        producer = Producer(settings, names)
        await stack.enter_async_context(Pulse(settings, producer.status))
        await producer.fill()
        operating = asyncio.ensure_future(producer.operate(over))
        others = [asyncio.ensure_future(one) for one in (producer.listen(), producer.repeat(), producer.skip())]
        await producer.load(over)
        await operating
        for task in others:
            task.cancel()
        for ended in await asyncio.gather(*others, return_exceptions=True):
            if not isinstance(ended, asyncio.CancelledError):
                raise AssertionError("a part of the load ended too early") from ended
        await producer.drain()
