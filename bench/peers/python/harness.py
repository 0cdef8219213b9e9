"""Shared by the scripts of the Python libraries: each only defines how its library adds, works and counts jobs left.

    python -m bench.peers.python.arq_peer ACTION --port ...

runs ACTION (enqueue, process, trickle or stamp) and prints its figures as lines of JSON, like common.js.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from bench.peers.clocks import Count, Stamps, Trickle, say, told_to_end

IN_FLIGHT = 32
"""Concurrent adds of a library without a bulk call."""
MORE_CONNECTIONS = "max_connections=300"
"""An option for URLs: some libraries use a connection per job, and redis-py allows 100 by default."""
POLL_S = 0.001
NEW_OBJECTS = 5_000
NUMBERS = {
    "port": 6379,
    "jobs": 1000,
    "groups": 0,
    "chunk": 1000,
    "inflight": 1,
    "concurrency": 1,
    "keep": 0,
    "rate": 1,
    "seconds": 1,
    "warmup": 0,
    "each": 1,
    "waited": 0,
}
"""Options of all peers; those that do not apply to Python libraries are accepted and ignored."""

Note = Callable[[str, float], None]
"""Records that a handler was called: the id of its payload, and when. May be called in any thread."""


class Peer(Protocol):
    """A library. It is opened in the running loop; a library without asyncio blocks it, and nothing else uses it."""

    async def open(self, url: str) -> None: ...

    async def add(self, index: int) -> None:
        """Add one job."""

    async def add_many(self, indices: Iterable[int]) -> None:
        """Add these jobs in the fastest documented way."""

    async def work(self, concurrency: int, note: Note) -> None:
        """Start a worker and return once it has started. Every handler calls `note`."""

    async def left(self) -> int:
        """How many jobs wait or run, by the library's own count."""

    async def close(self) -> None:
        """End child processes that would outlive this one."""


class OneByOne:
    """For libraries without a bulk call: several concurrent adds."""

    async def add(self, index: int) -> None:
        raise NotImplementedError

    async def add_many(self, indices: Iterable[int]) -> None:
        waiting = iter(indices)

        async def lane() -> None:
            for index in waiting:
                await self.add(index)

        await asyncio.gather(*(lane() for _ in range(IN_FLIGHT)))

    async def close(self) -> None:
        """There are no child processes to end."""


async def enqueue(peer: Peer, args: argparse.Namespace) -> dict[str, Any]:
    """Time from the first call to the last acknowledgement."""
    starts = iter(range(0, args.jobs, args.chunk))

    async def lane() -> None:
        for first in starts:
            await peer.add_many(range(first, min(first + args.chunk, args.jobs)))

    began = time.perf_counter()
    await asyncio.gather(*(lane() for _ in range(args.inflight)))
    return {"jobs": args.jobs, "seconds": time.perf_counter() - began}


async def process(peer: Peer, args: argparse.Namespace) -> dict[str, Any]:
    """Time from the first handler call until all jobs are handled and, by the library's count, nothing is left."""
    count = Count(args.jobs)

    def note(name: str, at_us: float) -> None:
        count.start()
        count.end()

    await peer.work(args.concurrency, note)
    await count.all.wait()
    while await peer.left():  # noqa: ASYNC110 - the truth is on the server
        await asyncio.sleep(POLL_S)
    return {"jobs": args.jobs, "seconds": time.perf_counter() - count.started, "handled": count.handled}


async def trickle(peer: Peer, args: argparse.Namespace) -> dict[str, Any]:
    async def add(index: int) -> None:
        await peer.add(index)

    return await Trickle(args, add, peer.left).run()


async def stamp(peer: Peer, args: argparse.Namespace) -> dict[str, Any]:
    """Process jobs until the input is closed, and record when they start."""
    stamps = Stamps(args.each)
    await peer.work(args.concurrency, stamps.note)
    say({"ready": 1})
    await told_to_end()
    return stamps.figures()


ACTIONS = {"enqueue": enqueue, "process": process, "trickle": trickle, "stamp": stamp}


async def _main(peer: Peer, args: argparse.Namespace) -> dict[str, Any]:
    await peer.open(f"redis://127.0.0.1:{args.port}")
    try:
        return await ACTIONS[args.action](peer, args)
    finally:
        await peer.close()


def run(peer: Peer) -> None:
    """Run with uvloop, if it is installed, and a tuned garbage collector, like `groupmq worker`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=ACTIONS)
    parser.add_argument("--queue", default="bench")
    for name, default in NUMBERS.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    logging.getLogger().setLevel(logging.ERROR)
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        say(runner.run(_main(peer, args)))
        # Exit without waiting for the threads of a library.
        sys.stdout.flush()
        os._exit(0)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
