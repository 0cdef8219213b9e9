"""What a scenario works with: the server, the counts, one library and the server's accounts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from bench.peers.library import Library, Outcome
from bench.peers.running import Running
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
        return self._run(
            "enqueue",
            jobs=jobs,
            groups=self.settings.groups,
            chunk=self.settings.chunk,
            inflight=self.settings.inflight,
            queue=queue,
        )

    def process(self, jobs: int, concurrency: int) -> Outcome:
        """Work until the queue is drained."""
        return self._run("process", jobs=jobs, concurrency=concurrency)

    def take(self, jobs: int, concurrency: int, *, queue: str) -> Outcome:
        """Work off some jobs of a longer backlog; only groupmq's process knows how."""
        return self._run("process", take=jobs, concurrency=concurrency, queue=queue)

    def ask(self, action: str, what: str, figures: Sequence[str], **options: int | str) -> Iterator[Sample]:
        """Samples `<what>_<figure>` of an action that only groupmq's process knows, on a clean server."""
        self.server.reset()
        port, timeout = self.server.port, self.settings.timeout
        found = self.library.ask(action, *figures, port=port, timeout=timeout, **options)
        for figure in figures:
            for value in found[figure]:
                yield f"{what}_{figure}", value

    def start(self, action: str, **options: int | str) -> AbstractContextManager[Running]:
        """A process of the library that works beside others until it is told to end."""
        return self.library.start(action, port=self.server.port, timeout=self.settings.timeout, **options)

    def probe(self) -> list[float]:
        """Milliseconds from adding a job to its result, one job after the other."""
        settings = self.settings
        found = self.library.ask(
            "probe",
            "ms",
            port=self.server.port,
            timeout=settings.timeout,
            jobs=settings.roundtrips,
            groups=settings.groups,
            warmup=settings.roundtrip_warmup,
            seconds=settings.roundtrip_seconds,
        )
        return found["ms"]

    def compare(self, what: str, variants: Sequence[str], *, adding: bool = False, **options: int) -> Iterator[Sample]:
        """What settings of the queue cost: samples `<what>_<variant>` and `<what>_server_<variant>`.

        With `adding` also `<what>_add_<variant>` and `<what>_server_add_<variant>`.
        """
        settings = self.settings
        kinds = ("", "server_", "add_", "server_add_") if adding else ("", "server_")
        return self.ask(
            "variants",
            what,
            [f"{kind}{variant}" for kind in kinds for variant in variants],
            variants=",".join(variants),
            slices=settings.slices,
            jobs=settings.slice_jobs,
            groups=settings.slice_groups,
            chunk=settings.chunk,
            inflight=settings.inflight,
            concurrency=100,
            **options,
        )

    def _run(self, action: str, **options: int | str) -> Outcome:
        return self.library.run(action, port=self.server.port, timeout=self.settings.timeout, **options)


@dataclass(frozen=True, slots=True)
class Scenario:
    """`run` yields (metric, value) pairs. A scenario without peers is measured for groupmq only, and once.

    `unable` are the peers that have no such thing.
    """

    name: str
    title: str
    run: Callable[[Context], Iterator[Sample]]
    peers: bool = True
    unable: frozenset[str] = frozenset()


def calibrate(server: Server, settings: Settings, library: Library) -> CallShare:
    """Learn which commands the library sends itself and which its scripts call."""
    server.reset()
    context = Context(server, settings, library, CallShare())
    with watch_calls(server) as share:
        context.enqueue(settings.calibration_jobs)
        context.process(settings.calibration_jobs, concurrency=100)
    return share
