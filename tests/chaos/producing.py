"""A producer, asynchronous or blocking, that keeps a backlog in every queue and defines repeating jobs."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Sequence
from random import Random
from typing import Any

from groupmq import Every, GroupMQError
from groupmq import Job as AsyncJob
from groupmq.sync import Queue as BlockingQueue
from tests.chaos.cast import QUEUE_OF, QUEUES, QueueRole, groups_of
from tests.chaos.handlers import millis
from tests.chaos.history import HistoryFile
from tests.chaos.jobs import Item, JobMaker, described
from tests.chaos.working import open_queue, options_of

FULL = {"orders": 350, "ticks": 50}
USUALLY_FULL = 70
"""A queue with this many waiting jobs gets no new ones for a while, so that the load adapts to the machine."""
LOOK, PAUSE = 0.3, 0.02
REPEATS = {f"every-{n}": (0.4, 0.7, 1.0, 2.5)[n % 4] for n in range(6)}
"""Key -> interval in seconds. All of them begin at the same instant, so their ticks are known in advance."""
ALONE = {"alone-0": 0.3, "alone-1": 0.5}
"""Repeating jobs with overlap="skip"; each occurrence takes longer than the interval."""


class Ledger:
    """Records each add: before it is sent, and its answer."""

    def __init__(self, history: HistoryFile) -> None:
        self._history = history
        self._n = 0

    def adding(self, queue: str, items: Sequence[Item]) -> str:
        self._n += 1
        op = f"{os.getpid()}/{self._n}"
        self._history.note("adding", q=queue, op=op, items=[described(item) for item in items])
        return op

    def added(self, op: str, jobs: Sequence[Any]) -> None:
        told = [
            {
                "id": job.id,
                "dup": job.duplicate,
                "order": job.order_ms,
                "created": millis(job.created_at),
                "due": millis(job.run_at),
            }
            for job in jobs
        ]
        self._history.note("added", op=op, answer="ok", jobs=told)

    def failed(self, op: str, error: GroupMQError) -> None:
        self._history.note("added", op=op, answer=type(error).__name__)


class Appetite:
    """Chooses queues that need more jobs, by their latest counts."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._waiting: dict[str, int] = {}
        self._looked = 0.0

    @property
    def stale(self) -> bool:
        return time.monotonic() - self._looked > LOOK

    def saw(self, waiting: dict[str, int]) -> None:
        self._waiting, self._looked = waiting, time.monotonic()

    def next(self) -> QueueRole | None:
        hungry = [r for r in QUEUES if r.share and self._waiting.get(r.name, 0) < FULL.get(r.name, USUALLY_FULL)]
        return self._random.choices(hungry, [role.share for role in hungry])[0] if hungry else None


def size(random: Random) -> int:
    return random.choice((1, 1, 1, 2, 4, 8, 12, 30, 130))


def produce(history: HistoryFile, settings: dict[str, Any]) -> None:
    # The jobs depend on the seed and on `life`, the number of this start of the process.
    random = Random(f"{settings['seed']}/{settings['life']}")
    name = f"{settings['name']}.{settings['round']}.{settings['life']}"
    maker = JobMaker(name, random, poison=settings.get("poison", False))
    if settings["style"] == "blocking":
        _Blocking(history, settings, random, maker).run()
    else:
        asyncio.run(_Awaiting(history, settings, random, maker).run())


class _Awaiting:
    def __init__(self, history: HistoryFile, settings: dict[str, Any], random: Random, maker: JobMaker) -> None:
        self._history, self._ledger = history, Ledger(history)
        self._settings, self._random, self._maker = settings, random, maker
        self._appetite = Appetite(random)
        self._queues = {role.name: open_queue(role.name, settings["url"]) for role in QUEUES}
        self._over = asyncio.Event()

    async def run(self) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._over.set)
        await self._define_repeats()
        self._history.note("ready", q=None)
        while not self._over.is_set():
            await self._look()
            role = self._appetite.next()
            if role is not None:
                await self._add(role)
            await asyncio.sleep(PAUSE)
        for queue in self._queues.values():
            await queue.close()

    async def _look(self) -> None:
        if self._appetite.stale:
            try:
                counts = {name: await queue.get_job_counts() for name, queue in self._queues.items()}
            except GroupMQError:
                return
            self._appetite.saw({name: count.waiting for name, count in counts.items()})

    async def _add(self, role: QueueRole) -> None:
        items = self._maker.items(role, size(self._random))
        if self._random.random() < 0.5:
            await self._call(role, items, self._queues[role.name].add_many(items))
        else:
            one = [self._one(role, item) for item in items]
            await asyncio.gather(*one)

    async def _one(self, role: QueueRole, item: Item) -> None:
        async def call() -> list[AsyncJob]:
            return [await self._queues[role.name].add(**item)]

        await self._call(role, [item], call())

    async def _call(self, role: QueueRole, items: list[Item], call: Any) -> None:
        op = self._ledger.adding(role.name, items)
        try:
            jobs = await call
        except GroupMQError as error:
            self._ledger.failed(op, error)
        else:
            self._ledger.added(op, jobs)

    async def _define_repeats(self) -> None:
        queue, groups = self._queues["ticks"], groups_of(QUEUE_OF["ticks"])
        for n, (key, seconds) in enumerate((REPEATS | ALONE).items()):
            start, alone = self._settings["epoch"], key in ALONE
            data = {"uid": f"tick:{key}", "q": "ticks", "do": "work", "s": 2 * seconds if alone else 0}
            repeat = Every(seconds, key=key, start=start, catch_up="all", overlap="skip" if alone else "allow")
            told = {"key": key, "start": round(start * 1000), "every": round(seconds * 1000), "alone": alone}
            self._history.note("repeating", **told)
            try:
                await queue.add(data, group_id=key if alone else groups[n % len(groups)], repeat=repeat)
            except GroupMQError as error:
                self._history.note("repeats", answer=type(error).__name__, **told)
            else:
                self._history.note("repeats", answer="ok", **told)


class _Blocking:
    def __init__(self, history: HistoryFile, settings: dict[str, Any], random: Random, maker: JobMaker) -> None:
        self._history, self._ledger = history, Ledger(history)
        self._random, self._maker, self._appetite = random, maker, Appetite(random)
        self._queues = {
            role.name: BlockingQueue(role.name, settings["url"], **options_of(role.name)) for role in QUEUES
        }
        self._over = False

    def run(self) -> None:
        signal.signal(signal.SIGTERM, self._leave)
        self._history.note("ready", q=None)
        while not self._over:
            self._look()
            role = self._appetite.next()
            if role is not None:
                self._add(role)
            time.sleep(PAUSE)
        for queue in self._queues.values():
            queue.close()

    def _leave(self, *_: Any) -> None:
        self._over = True

    def _look(self) -> None:
        if self._appetite.stale:
            try:
                counts = {name: queue.get_job_counts() for name, queue in self._queues.items()}
            except GroupMQError:
                return
            self._appetite.saw({name: count.waiting for name, count in counts.items()})

    def _add(self, role: QueueRole) -> None:
        queue, items = self._queues[role.name], self._maker.items(role, size(self._random))
        many = self._random.random() < 0.6
        for batch in [items] if many else [[item] for item in items]:
            op = self._ledger.adding(role.name, batch)
            try:
                jobs = queue.add_many(batch) if many else [queue.add(**batch[0])]
            except GroupMQError as error:
                self._ledger.failed(op, error)
            else:
                self._ledger.added(op, jobs)
