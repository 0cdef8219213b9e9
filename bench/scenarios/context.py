"""The context of a scenario: the server, the counts, one library and the server's statistics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from bench.peers.library import Library, Outcome
from bench.peers.running import Figures, Running
from bench.server import Server
from bench.servertime import CallShare, Meter, watch_calls
from bench.settings import Settings

Sample = tuple[str, float]


@dataclass(slots=True)
class Context:
    """One library on the run's server. Every measurement starts from `server.reset()`.

    `raw` has the values behind the figures; `shares` and `rates` are determined once by scenarios and used again.
    """

    server: Server
    settings: Settings
    library: Library
    share: CallShare
    raw: dict[tuple[str, str], list[list[float]]] = field(default_factory=lambda: defaultdict(list))
    shares: dict[str, CallShare] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)

    @property
    def meter(self) -> Meter:
        return Meter(self.server, self.share)

    @property
    def timeout(self) -> float:
        return self.settings.python_timeout if self.library.kind == "python" else self.settings.timeout

    def metered(self, share: CallShare | None) -> Meter:
        """A meter with the call shares of a run of the same kind; None = those of the library."""
        return Meter(self.server, share or self.share)

    def keep(self, what: str, values: list[float]) -> None:
        """Add the values behind a figure to the results."""
        self.raw[what, self.library.key].append(values)

    def enqueue(self, jobs: int, *, queue: str = "bench", **how: int) -> Outcome:
        """Add jobs; `how` has groups, chunk and inflight if they differ from the settings."""
        settings = self.settings
        usual = {"groups": settings.groups, "chunk": settings.chunk, "inflight": settings.inflight}
        return self._run("enqueue", jobs=jobs, queue=queue, **{**usual, **how})

    def process(self, jobs: int, concurrency: int, **handlers: int) -> Outcome:
        """Work until the queue is empty; `handlers` has sleep_ms and, for groupmq, blocking."""
        return self._run("process", jobs=jobs, concurrency=concurrency, **handlers)

    def take(self, jobs: int, concurrency: int, *, queue: str) -> Outcome:
        """Process some jobs of a longer backlog; only the process of groupmq supports this."""
        return self._run("process", take=jobs, concurrency=concurrency, queue=queue)

    def ask(self, action: str, what: str, figures: Sequence[str], **options: int | str) -> Iterator[Sample]:
        """Samples `<what>_<figure>` of an action that only the process of groupmq supports, on a clean server."""
        self.server.reset()
        found = self.asked(action, *figures, **options)
        for figure in figures:
            for value in found[figure]:
                yield f"{what}_{figure}", value

    def asked(self, action: str, *figures: str, **options: int | str) -> Figures:
        """Run one action to its end and return its figures."""
        return self.library.ask(action, *figures, port=self.server.port, timeout=self.timeout, **options)

    def start(self, action: str, **options: int | str) -> AbstractContextManager[Running]:
        """Start a process of the library that runs beside others until its input is closed."""
        return self.library.start(action, port=self.server.port, timeout=self.timeout, **options)

    def probe(self) -> list[float]:
        """Milliseconds from adding a job to its result, for one job at a time."""
        settings = self.settings
        found = self.asked(
            "probe",
            "ms",
            jobs=settings.roundtrips,
            groups=settings.groups,
            warmup=settings.roundtrip_warmup,
            seconds=settings.roundtrip_seconds,
        )
        return found["ms"]

    def compare(self, what: str, variants: Sequence[str], *, adding: bool = False, **options: int) -> Iterator[Sample]:
        """The cost of settings of the queue: samples `<what>_<variant>` and `<what>_server_<variant>`.

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
        return self.library.run(action, port=self.server.port, timeout=self.timeout, **options)


@dataclass(frozen=True, slots=True)
class Scenario:
    """`run` yields (metric, value) pairs. A scenario without peers is measured for groupmq only, and once.

    `kinds` are the peers that are measured, `unable` those of them that do not support it.
    """

    name: str
    title: str
    run: Callable[[Context], Iterator[Sample]]
    peers: bool = True
    kinds: frozenset[str] = frozenset({"node"})
    unable: frozenset[str] = frozenset()


def calibrate(server: Server, settings: Settings, library: Library) -> CallShare:
    """Determine which commands the library sends itself and which its scripts call."""
    server.reset()
    context = Context(server, settings, library, CallShare())
    with watch_calls(server) as share:
        context.enqueue(settings.calibration_jobs)
        context.process(settings.calibration_jobs, concurrency=100)
    return share
