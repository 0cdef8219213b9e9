"""What a scenario works with: the server, the counts, one library and the server's accounts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.peers.library import Library, Outcome
from bench.server import Server
from bench.servertime import CallShare, Meter, watch_calls
from bench.settings import Settings

Sample = tuple[str, float]


@dataclass(slots=True)
class Context:
    """One library on the run's server. Every measurement starts from `server.reset()`."""

    server: Server
    settings: Settings
    library: Library
    share: CallShare

    @property
    def meter(self) -> Meter:
        return Meter(self.server, self.share)

    def enqueue(self, jobs: int, *, queue: str = "bench") -> Outcome:
        return self.library.run(
            "enqueue",
            port=self.server.port,
            timeout=self.settings.timeout,
            queue=queue,
            jobs=jobs,
            groups=self.settings.groups,
            chunk=self.settings.chunk,
            inflight=self.settings.inflight,
        )

    def process(self, jobs: int, concurrency: int) -> Outcome:
        """Work until the queue is drained."""
        return self.library.run(
            "process",
            port=self.server.port,
            timeout=self.settings.timeout,
            jobs=jobs,
            concurrency=concurrency,
        )

    def take(self, jobs: int, concurrency: int, *, queue: str) -> Outcome:
        """Work off some jobs of a longer backlog; only groupmq's process knows how."""
        return self.library.run(
            "process",
            port=self.server.port,
            timeout=self.settings.timeout,
            queue=queue,
            take=jobs,
            concurrency=concurrency,
        )


@dataclass(frozen=True, slots=True)
class Scenario:
    """`run` yields (metric, value) pairs. A scenario without peers is measured for groupmq only, and once."""

    name: str
    title: str
    run: Callable[[Context], Iterator[Sample]]
    peers: bool = True


def calibrate(server: Server, settings: Settings, library: Library) -> CallShare:
    """Learn which commands the library sends itself and which its scripts call."""
    server.reset()
    context = Context(server, settings, library, CallShare())
    with watch_calls(server) as share:
        context.enqueue(settings.calibration_jobs)
        context.process(settings.calibration_jobs, concurrency=100)
    return share
