"""The event log of a queue in one process, without a server: it keeps nothing of ended jobs."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from typing import Any

import msgspec

from groupmq.client.events import Channel
from groupmq.client.events.results import Results
from groupmq.core.codec import JSON
from groupmq.core.record import Record
from groupmq.core.snapshot import Snapshot
from groupmq.protocol.keys import Keys

THEN = 1_700_000_000_000
JOBS, AT_ONCE = 100_000, 500


class Connection:
    """A connection to a server whose log is always empty when it is read."""

    def __init__(self) -> None:
        self.session = self
        self.keys = Keys("groupmq", "q")

    async def call(self, call: Any) -> list[Any]:
        return []


class Log(Channel):
    """A channel whose log entries come from the test."""

    def __init__(self) -> None:
        super().__init__(Connection(), JSON)  # type: ignore[arg-type]
        self._entries = 0
        self.now = THEN

    async def ready(self) -> None:
        pass

    def hear(self, *kinds: list[Any], blob: bytes = b"") -> None:
        self._entries += 1
        self.now += 1
        fields = [b"e", msgspec.msgpack.encode([self._entries, self.now, *kinds]), b"b", blob]
        self.feed([[f"{self.now}-0".encode(), fields]])


class Rounds:
    """Rounds of jobs, from add to end. Some have a waiting result() call, some a listener."""

    def __init__(self) -> None:
        self.log = Log()
        self.heard = 0
        self.made = 0
        self._created = THEN
        self._results = Results(self._waiting, listens=lambda: True)
        self.log.emitter.on("completed", self._count)

    async def _waiting(self, job_id: str) -> Snapshot:
        return Snapshot(None, JSON, job_id, "waiting", Record(0, 0, 0, self._created, 3, False, None, {}, b"1"), 3)

    def _count(self, event: object) -> None:
        self.heard += 1

    async def take(self) -> None:
        ids = [f"job-{n}" for n in range(self.made, self.made + AT_ONCE)]
        self.made += AT_ONCE
        groups, ones = [""] * AT_ONCE, [1] * AT_ONCE
        self.log.hear(["added", ids, groups])
        self._created = self.log.now
        waited_for = [await self._waiting(one) for one in ids[::10]]
        waits = [asyncio.create_task(self._results.of(self.log, one, None)) for one in waited_for]
        await asyncio.sleep(0)
        listeners = [self.log.listeners_of(job_id, self._created) for job_id in ids[::20]]
        for one in listeners:
            one.on("completed", self._count)
        self.log.hear(["active", ids, groups, ones, "worker"])
        self.log.hear(["completed", ids, groups, ones, ones], blob=b"7" * AT_ONCE)
        assert await asyncio.gather(*waits) == [7] * (AT_ONCE // 10)
        if self.log._catching_up is not None:
            await self.log._catching_up


def objects() -> Counter[str]:
    gc.collect()
    return Counter(type(one).__name__ for one in gc.get_objects())


async def test_memory_is_flat_over_a_hundred_thousand_jobs() -> None:
    rounds = Rounds()
    while rounds.made < JOBS / 4:
        await rounds.take()  # afterwards all bounded caches are full
    before = objects()
    while rounds.made < JOBS:
        await rounds.take()
    more = objects() - before
    assert rounds.heard == JOBS + JOBS // 20
    assert more.total() < AT_ONCE, f"more after {JOBS} jobs: {more.most_common(10)}"
