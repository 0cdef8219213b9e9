"""Shared by the Python processes of all libraries: lines of JSON, the clocks, the pace.

It uses only the standard library: the peers have their own environments, without groupmq.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

INFLIGHT = 1000
DRAIN_S = 5.0
POLL_S = 0.005


def payload(index: int) -> dict[str, str]:
    """20 bytes as JSON, different for every job."""
    return {"id": f"{index:011d}"}


def say(figures: Mapping[str, Any]) -> None:
    print(json.dumps(figures), flush=True)


async def told_to_end() -> None:
    """Return when the parent process closes the input of this one, to end it."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()


def now_us() -> float:
    """Microseconds of CLOCK_MONOTONIC, which is the same for every process of the machine."""
    return time.monotonic_ns() / 1000


class Count:
    """The number of handlers that have ended, and the start of the first one; handlers may run in threads."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.handled = 0
        self.started = self.stopped = 0.0
        self.all = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()

    def start(self) -> None:
        if not self.started:
            self.started = time.perf_counter()

    def end(self) -> None:
        with self._lock:
            self.handled += 1
            if self.handled != self.wanted:
                return
        self.stopped = time.perf_counter()
        self._loop.call_soon_threadsafe(self.all.set)


class Stamps:
    """The start times of every --each-th job."""

    def __init__(self, each: int) -> None:
        self._each = each
        self._handled = 0
        self._started: list[tuple[int, float]] = []

    def note(self, name: str, at_us: float) -> None:
        self._handled += 1
        if int(name) % self._each == 0:
            self._started.append((int(name), at_us))

    def figures(self) -> dict[str, Any]:
        started = self._started
        return {"jobs": self._handled, "id": [i for i, _ in started], "at_us": [at for _, at in started]}


class Calls:
    """Adds that are not acknowledged yet, at most INFLIGHT; the first error ends the run."""

    def __init__(self) -> None:
        self._open: set[asyncio.Task[Any]] = set()
        self._error: BaseException | None = None
        self._fewer = asyncio.Event()

    def start(self, call: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(call)
        self._open.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._open.discard(task)
        self._error = self._error or task.exception()
        self._fewer.set()

    async def below(self, limit: int) -> None:
        while len(self._open) >= limit:
            self._fewer.clear()
            await self._fewer.wait()
        if self._error:
            raise self._error


class Trickle:
    """Adds --rate jobs per second, one per call, and records when every --each-th was sent.

    With --waited it waits for the results of these jobs with `wait` instead.
    """

    def __init__(
        self,
        args: argparse.Namespace,
        add: Callable[[int], Coroutine[Any, Any, Any]],
        left: Callable[[], Awaitable[int]],
        wait: Callable[[int], Awaitable[Any]] | None = None,
    ) -> None:
        self._args = args
        self._add = add
        self._left = left
        self._wait = wait
        self._calls = Calls()
        self._next = 0
        self._noted: dict[str, list[float]] = {"id": [], "sent_us": [], "result_ms": []}

    async def run(self) -> dict[str, Any]:
        """Add --warmup jobs that do not count, print `ready` when they are done, then add --rate for --seconds."""
        await self._pace(self._args.warmup, counted=False)
        say({"ready": 1})
        began = now_us()
        jobs = self._args.rate * self._args.seconds
        left = await self._pace(jobs, counted=True)
        return {"jobs": jobs, "seconds": (now_us() - began) / 1e6, "left": left, **self._noted}

    async def _pace(self, jobs: int, *, counted: bool) -> int:
        """Add the jobs and wait until they are done. Returns how many are left if that takes too long."""
        began = now_us()
        rate = self._args.rate
        done = 0
        while done < jobs:
            due = min(jobs, 1 + int((now_us() - began) / 1e6 * rate))
            while done < due:
                await self._calls.below(INFLIGHT)
                self._send(counted=counted)
                done += 1
            await asyncio.sleep(max(0.001, done / rate - (now_us() - began) / 1e6))
        await self._calls.below(1)
        return await self._drained()

    def _send(self, *, counted: bool) -> None:
        index = self._next
        self._next += 1
        if not counted or index % self._args.each:
            self._calls.start(self._add(index))
        elif self._args.waited:
            self._calls.start(self._wait_for(index))
        else:
            self._noted["id"].append(index)
            self._noted["sent_us"].append(now_us())
            self._calls.start(self._add(index))

    async def _wait_for(self, index: int) -> None:
        assert self._wait is not None
        sent = now_us()
        await self._wait(index)
        self._noted["result_ms"].append((now_us() - sent) / 1000)

    async def _drained(self) -> int:
        limit = now_us() + DRAIN_S * 1e6
        while (left := await self._left()) and now_us() < limit:  # noqa: ASYNC110 - the truth is on the server
            await asyncio.sleep(POLL_S)
        return left
