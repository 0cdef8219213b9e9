"""One connection that waits for work in all partitions of a queue that are on one server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from groupmq.client.connection.blocking_reads import WakeConnection
from groupmq.client.connection.endpoint import Endpoint
from groupmq.runtime.tasks import end_tasks
from groupmq.worker.outage import Pauses
from groupmq.worker.sharing import SharedSlots

ROUNDS = 8
"""After this many blocking reads that timed out, each partition has been asked for work once, in case a worker popped
a marker and died. Each timeout asks only some of them, so that an idle worker of many partitions makes few calls."""


class CommonWake:
    """Blocks on the markers of all partitions while there is a free slot. A marker wakes one worker."""

    def __init__(
        self,
        endpoint: Endpoint,
        pokes: Mapping[str, Callable[[], None]],
        slots: SharedSlots,
        timeout: float,
    ) -> None:
        """`pokes`: the marker of each partition, and what asks for work there."""
        self._endpoint = endpoint
        self._markers = list(pokes)
        self._pokes = pokes
        self._slots = slots
        self._timeout = timeout
        self._room = asyncio.Event()
        slots.on_room(self._room.set)
        self._at = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._watch())

    async def close(self) -> None:
        await end_tasks([self._task])

    async def _watch(self) -> None:
        wake = WakeConnection(self._endpoint, self._markers, self._timeout)
        pauses, failing = Pauses(), False
        try:
            while True:
                while self._slots.room() <= 0:
                    self._room.clear()
                    await self._room.wait()
                try:
                    popped = await wake.wait()
                    if popped is not None and self._slots.room() <= 0:
                        await wake.put_back(popped.key)  # this worker is busy by now: give the hint to another one
                        self._pokes[popped.key]()
                        continue
                    pauses.reset()
                except Exception:  # every kind of error, as in PersistentCalls
                    if not failing:
                        # Each consumer calls the server now and notices the outage, instead of when its timer ends.
                        for poke in self._pokes.values():
                            poke()
                    failing = True
                    await asyncio.sleep(pauses.next())
                    continue
                failing = False
                if popped is not None:
                    self._pokes[popped.key]()
                else:
                    self._ask_some()
        finally:
            await wake.close()

    def _ask_some(self) -> None:
        step = -(-len(self._markers) // ROUNDS)
        for i in range(step):
            self._pokes[self._markers[(self._at + i) % len(self._markers)]]()
        self._at = (self._at + step) % len(self._markers)
