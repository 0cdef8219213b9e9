"""Every operation of the library on a large queue, and how long its slowest call kept the server busy."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import redis

from bench.grids import OPERATIONS
from bench.peers.clocks import payload
from groupmq import Every, FailJob, Job, JobFilter, Queue, Throttle, Worker
from groupmq.client.queue.groups import GroupSort
from groupmq.protocol import commands, functions
from groupmq.protocol.commands import Policy

SEEN_US, SLOW_US = 500, 5_000
"""Microseconds from which calls are recorded, and from which they are too slow."""
DEEP = "deep"
LARGE = 1024 * 1024 - 100
"""Bytes of a payload just below the default bound."""
MANY_LARGE = 40
LATER_S, PAST_LEASE_S = 3600, 0.05
LOOP = "local x = 0 for i = 1, tonumber(ARGV[1]) do x = x + i % 7 end return 1"
LOOP_US, LOOPS = 2_000, 200
"""A script that only computes, how long it should take, and how often it runs after each queue."""
LOADING = ("EVAL", "FUNCTION")
"""Commands that only load scripts or functions: the time to compile them is not part of the cost of calls."""


class SlowLog:
    """The server's own list of calls that took long, read after each operation."""

    def __init__(self, client: Any) -> None:
        self._client = client
        loaded = [functions.load(name) for name in functions.names()]
        self._names = {script.function: script.name for script in loaded} | {s.sha: s.name for s in loaded}
        client.config_set("slowlog-max-len", 100_000)
        client.config_set("slowlog-log-slower-than", SEEN_US)
        client.slowlog_reset()

    def read(self) -> list[tuple[str, int]]:
        """Script (or command) and microseconds of each call since the last read."""
        found = [(self._name(entry["command"].split(b" ", 2)), entry["duration"]) for entry in self._entries()]
        self._client.slowlog_reset()
        return found

    def timed(self, script: str, *args: int) -> int:
        """Microseconds of one call of a script, by the same log; 0 if it is too short to be logged."""
        self._client.slowlog_reset()
        self._client.eval(script, 0, *args)
        return max((us for _, us in self.read()), default=0)

    def plain_hsets(self, data: str) -> None:
        """Store large values with plain HSETs, for comparison."""
        for field in range(64):
            self._client.hset("plain", str(field), data)
        self._client.unlink("plain")

    def _entries(self) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = self._client.slowlog_get(100_000)
        return entries

    def _name(self, words: list[bytes]) -> str:
        """The script or function of a call; the command if it calls none."""
        command = words[0].decode()
        return self._names.get(words[1].decode("ascii", "replace"), command) if len(words) > 1 else command


class Round:
    """A round over several queues in sequence, each of which is filled, processed and deleted."""

    def __init__(self, args: argparse.Namespace, client: Any) -> None:
        self._args = args
        self._log = SlowLog(client)
        self.figures: dict[str, float] = defaultdict(float)

    async def measured(self, operation: str, work: Awaitable[Any]) -> None:
        """Run an operation and record its slowest call and the number of calls that were too slow."""
        assert operation in OPERATIONS, operation
        self._log.read()
        await work
        calls = [(name, us) for name, us in self._log.read() if name not in LOADING]
        slow = [f"{name} {us / 1000:.1f} ms" for name, us in calls if us >= SLOW_US]
        slowest = max((us for _, us in calls), default=0) / 1000
        self.figures[f"{operation}_slowest"] = max(slowest, self.figures[f"{operation}_slowest"])
        self.figures[f"{operation}_slow"] += len(slow)
        if slow:
            print(f"{operation}: {', '.join(slow[:20])}", file=sys.stderr, flush=True)

    def noise(self) -> None:
        """Measure how slow calls of a known length get, to see what the machine adds to any call."""
        rounds = 10_000
        while (took := self._log.timed(LOOP, rounds)) < LOOP_US:
            rounds = int(rounds * max(1.1, min(4, LOOP_US / max(took, 1))))
        times = [self._log.timed(LOOP, rounds) for _ in range(LOOPS)]
        self.figures["noise_slowest"] = max(max(times) / 1000, self.figures["noise_slowest"])
        self.figures["noise_slow"] += sum(us >= SLOW_US for us in times)

    @asynccontextmanager
    async def queue(self, name: str, **options: Any) -> AsyncIterator[Queue]:
        kept = {"keep_completed": 0, "keep_failed": 0} | options
        async with Queue(name, f"redis://127.0.0.1:{self._args.port}", **kept) as queue:
            yield queue
            await self.measured("obliterate", queue.obliterate())
        self.noise()

    async def add(self, queue: Queue, jobs: int, groups: int, **fields: Any) -> None:
        for first in range(0, jobs, 10_000):
            last = min(first + 10_000, jobs)
            await queue.add_many(
                [{"data": payload(i), "group_id": f"group-{i % groups}", **fields} for i in range(first, last)]
            )

    # The queues

    async def main_queue(self) -> None:
        """All jobs in all groups and in one deep group: reading, processing, changing and repairing."""
        jobs, groups, deep = self._args.jobs, self._args.groups, self._args.take
        async with self.queue("main", keep_completed=jobs, keep_failed=jobs, max_attempts=1) as queue:
            await self.measured("add", self.add(queue, jobs, groups))
            await self.measured("add", self.add(queue, deep, 1, group_id=DEEP))
            await self.measured("look", look_at_all(queue))
            await self.measured("process", process(queue, jobs // 4, concurrency=100))
            await self.measured("process", process(queue, jobs // 10, concurrency=1000, prefetch=0))
            await self.measured("process", process(queue, jobs // 100, concurrency=1))
            await self.measured("fail", process(queue, jobs // 10, concurrency=100, handler=fail))
            await self.measured("take_back", let_leases_expire(queue, jobs // 20))
            await self.measured("retry", retry_failed(queue, 200))
            await self.measured("look", look_at_all(queue))
            await self.measured("repair", queue.repair())
            await self.measured("cancel_group", queue.cancel_group(DEEP))
            await self.measured("clean", queue.clean("completed", limit=jobs))
            await self.measured("clean", queue.clean("waiting", limit=jobs // 10))
            await self.measured("purge", queue.purge(("waiting", "failed")))

    async def delayed_queue(self) -> None:
        """Many jobs that are not due yet, then many that are due all at once."""
        jobs, groups = self._args.jobs, self._args.groups
        async with self.queue("delayed") as queue:
            await self.measured("add", self.add(queue, jobs // 2, groups, delay=LATER_S))
            await self.measured("repair", queue.repair())
            await self.measured("cancel_group", queue.cancel_group("group-0"))
            await self.measured("clean", queue.clean("delayed", limit=jobs // 10))
            await self.measured("purge", queue.purge(("delayed",)))
            await self.measured("add", self.add(queue, jobs // 4, groups, delay=0.001))
            await self.measured("due", queue.promote_delayed_jobs())
            await self.measured("add", self.add(queue, jobs // 4, groups, delay=0.001))
            await self.measured("due", process(queue, jobs // 2, concurrency=100))

    async def limited_queue(self) -> None:
        """Expiring ttls, dedupe keys, repeating jobs, jobs without a group."""
        jobs, groups = self._args.jobs // 10, self._args.groups // 10
        async with self.queue("limited") as queue:
            await self.measured("add", self.add(queue, jobs, groups, ttl=0.001))
            await self.measured("expire", queue.run_scheduler_once())
            await self.measured("expire", queue.check_stalled_jobs())
            items = [{"data": i, "dedupe": Throttle(f"key-{i}", 0.001)} for i in range(jobs)]
            await self.measured("add", queue.add_many(items))
            await self.measured("expire", sweep(queue, jobs))
            await self.measured("process", process(queue, jobs, concurrency=100))
            for i in range(500):
                await queue.add(i, group_id=f"group-{i}", repeat=Every(0.5))
            await asyncio.sleep(0.5)
            await self.measured("repeat", queue.run_scheduler_once())

    async def large_payloads(self) -> None:
        data = "x" * LARGE
        async with self.queue("large", max_payload=2 * LARGE) as queue:
            items = [{"data": data, "group_id": f"group-{i}"} for i in range(32)]
            await self.measured("large_add", queue.add_many(items))
            await self.measured("large_process", process(queue, 32, concurrency=16))
        await self.large_queue(data)
        await self.measured("large_hset", asyncio.to_thread(self._log.plain_hsets, data))

    async def large_queue(self, data: str) -> None:
        """All operations on large jobs other than completing them; most of them do not need the data."""
        jobs = MANY_LARGE
        items = [{"data": data, "group_id": f"group-{i % 8}"} for i in range(jobs)]
        later = [{**item, "delay": LATER_S} for item in items]
        options = {"keep_completed": jobs // 2, "keep_failed": jobs, "max_attempts": 2, "max_payload": 2 * LARGE}
        async with self.queue("large-life", **options) as queue:
            await self.measured("large_add", queue.add_many([{**item, "delay": 0.001} for item in items]))
            await self.measured("large_due", queue.promote_delayed_jobs())
            await self.measured("large_look", look_at_all(queue))
            await self.measured("large_fail", let_leases_expire(queue, jobs, at_once=4))
            await self.measured("large_fail", process(queue, jobs // 2, concurrency=16, handler=fail_for_good))
            await self.measured("large_look", look_at_all(queue))
            await self.measured("large_repair", queue.repair())
            await self.measured("large_fail", queue.retry_many(limit=jobs))
            await self.measured("large_process", process(queue, jobs // 2, concurrency=8, handler=answer_at_length))
            await self.measured("large_look", look_at_all(queue))
            await self.measured("large_repair", queue.repair())
            await self.measured("large_remove", queue.clean("completed", limit=jobs))
            await self.measured("large_add", queue.add_many(later))
            await self.measured("large_change", change_data(queue, data))
            await self.measured("large_change", repeat_large(queue, data))
            await self.measured("large_remove", queue.purge(("delayed", "waiting", "failed")))
            await self.measured("large_add", queue.add_many(items))
            await self.measured("large_remove", queue.cancel_group("group-0"))
            await self.measured("large_remove", remove_one_by_one(queue))

    async def many_groups(self) -> None:
        """A group per job."""
        async with self.queue("groups") as queue:
            await self.measured("add", self.add(queue, 3 * self._args.groups, 3 * self._args.groups))


async def run(args: argparse.Namespace) -> dict[str, float]:
    """--jobs jobs in --groups groups, and --take jobs in one more group. Figures: `<operation>_slowest`, `_slow`."""
    logging.getLogger("groupmq").setLevel(logging.CRITICAL)  # thousands of jobs fail here on purpose
    with redis.Redis(port=args.port) as client:
        this = Round(args, client)
        await this.main_queue()
        await this.delayed_queue()
        await this.limited_queue()
        await this.large_payloads()
        await this.many_groups()
        return dict(this.figures)


async def process(
    queue: Queue, jobs: int, handler: Callable[[Job], Coroutine[Any, Any, None]] | None = None, **options: Any
) -> None:
    """Process at least that many jobs."""
    enough = asyncio.Event()
    started = 0

    async def handle(job: Job) -> None:
        nonlocal started
        started += 1
        if started >= jobs:
            enough.set()
        if handler is not None:
            await handler(job)

    async with Worker(queue, handle, **options):
        await enough.wait()


async def fail(job: Job) -> None:
    raise RuntimeError("this job fails")


async def fail_for_good(job: Job) -> Any:
    raise FailJob("this job fails")


async def answer_at_length(job: Job) -> Any:
    return job.data


async def change_data(queue: Queue, data: str) -> None:
    for job_id in await queue.get_delayed_jobs(limit=8):
        await queue.update_data(job_id, "small")
        await queue.update_data(job_id, data)


async def repeat_large(queue: Queue, data: str) -> None:
    await queue.add(data, group_id="repeat", repeat=Every(0.1))
    await asyncio.sleep(PAST_LEASE_S * 3)
    await queue.run_scheduler_once()


async def remove_one_by_one(queue: Queue) -> None:
    for job_id in await queue.get_waiting_jobs(limit=8):
        await queue.remove(job_id)


async def let_leases_expire(queue: Queue, jobs: int, at_once: int = 100) -> None:
    """Take jobs like workers that then die, and take their leases back."""
    for request in range(-(-jobs // at_once)):
        await queue._connection.call(
            commands.advance(
                worker="dead",
                requester=f"dead:{request}",
                request=1,
                outcomes=[],
                take=at_once,
                lease_ms=1,
                policy=Policy(2, -1, queue.options.keep),
            ),
            0.0,
        )
    await asyncio.sleep(PAST_LEASE_S)
    await queue.check_stalled_jobs()


async def retry_failed(queue: Queue, jobs: int) -> None:
    for job in await queue.get_failed_jobs(limit=jobs):
        await queue.retry(job.id)
    await queue.retry_many(limit=5 * jobs)


async def sweep(queue: Queue, jobs: int) -> None:
    """Delete expired keys; each call of the scheduler deletes some."""
    for _ in range(-(-jobs // 500)):
        await queue.run_scheduler_once()


async def browse(queue: Queue) -> None:
    """Read requesters, the jobs of groups, searches and failures by kind."""
    sorts: tuple[GroupSort, ...] = ("held", "oldest", "deepest", "busiest", "name")
    for sort in sorts:
        await queue.get_groups(sort=sort, behind=5)
    page = await queue.get_group_jobs(DEEP, limit=1_000)
    for job in page.jobs[:10]:
        await queue.get_position(job.id)
        await queue.get_attempts(job.id)
    for state in ("active", "waiting", "delayed", "completed", "failed"):
        await queue.search(JobFilter(text="in no job"), state=state)
    await queue.get_failure_groups()


async def look_at_all(queue: Queue) -> None:
    await browse(queue)
    await queue.get_job_counts()
    await queue.get_metrics(minutes=20_160)
    await queue.get_jobs(limit=5_000)
    await queue.get_completed_jobs(limit=5_000)
    await queue.get_unique_groups()
    await queue.get_group(DEEP)
    await queue.get_failures(limit=1_000)
    await queue.get_workers()
    cursor = "0"
    for _ in range(20):
        cursor = (await queue.survey(cursor=cursor, also=[DEEP])).cursor
