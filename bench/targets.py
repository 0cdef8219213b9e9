"""The targets: bounds on ratios of figures within one run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bench.metrics import CONCURRENCIES, OURS, Samples


@dataclass(frozen=True, slots=True)
class Target:
    """Bounds on the ratio of two medians of the same run; absolute times are never judged.

    One of `at_least`, `at_most` and `below` must hold. `aim` is a stricter bound in the same direction: the goal.
    """

    title: str
    numerator: tuple[str, str]
    denominator: tuple[str, str]
    at_least: float | None = None
    at_most: float | None = None
    below: float | None = None
    aim: float | None = None

    @property
    def bound(self) -> str:
        if self.at_least is not None:
            return f">= {self.at_least:g}x"
        if self.at_most is not None:
            return f"<= {self.at_most:g}x"
        return f"< {self.below:g}x"

    @property
    def wish(self) -> str:
        """The aim as text; empty if there is none."""
        if self.aim is None:
            return ""
        return f">= {self.aim:g}x" if self.at_least is not None else f"<= {self.aim:g}x"

    def holds(self, ratio: float) -> bool:
        return (
            (self.at_least is None or ratio >= self.at_least)
            and (self.at_most is None or ratio <= self.at_most)
            and (self.below is None or ratio < self.below)
        )

    def reached(self, ratio: float) -> bool:
        """Whether the aim is reached; a target without an aim is reached when it holds."""
        if self.aim is None:
            return self.holds(ratio)
        return ratio >= self.aim if self.at_least is not None else ratio <= self.aim


@dataclass(frozen=True, slots=True)
class Verdict:
    target: Target
    ratio: float
    passed: bool

    @property
    def word(self) -> str:
        if not self.passed:
            return "MISSED"
        return "aim" if self.target.aim is not None and self.target.reached(self.ratio) else "pass"


PEERS = {"bullmq": "BullMQ", "bee_queue": "bee-queue", "groupmq_node": "GroupMQ (Node)"}


def _against(title: str, metric: str, peer: str, **bounds: float) -> Target:
    return Target(f"{title} vs {PEERS[peer]}", (metric, OURS), (metric, peer), **bounds)


def _own(title: str, top: str, bottom: str, **bounds: float) -> Target:
    return Target(title, (top, OURS), (bottom, OURS), **bounds)


def _one_by_one() -> Iterator[Target]:
    """The targets for jobs that each have their own group, or none."""
    bounds = {1: ((1.5, 4), (1, 3)), 100: ((3, 5), (1.5, 2.5))}
    for concurrency in CONCURRENCIES:
        for peer, (must, aim) in zip(("bullmq", "bee_queue"), bounds.get(concurrency, ()), strict=False):
            for case, words in (("each", "a group per job"), ("ungrouped", "no groups")):
                title = f"process at {concurrency}, {words},"
                yield _against(title, f"{case}_{concurrency}", peer, at_least=must, aim=aim)


TARGETS = (
    _against("server time per job at 200 jobs/s", "trickle_200_server", "bullmq", at_most=0.5, aim=0.3),
    _against("server time per job at 200 jobs/s", "trickle_200_server", "bee_queue", at_most=3.5, aim=2),
    _own("call that returns after its definitions vs return 1", "fixed_defined", "fixed_reference", at_most=3, aim=2),
    _own("awaited add vs a bare EVALSHA of redis-py", "single_add_p50", "single_bare_p50", at_most=2.2, aim=1.5),
    _against("add to start when idle, p50,", "trickle_200_start_p50", "bullmq", at_most=1, aim=0.8),
    _against("add to start when idle, p50,", "trickle_200_start_p50", "bee_queue", at_most=1.6, aim=1.2),
    _against("add to result when idle, p50,", "roundtrip_idle_p50", "bullmq", at_most=1.1, aim=0.7),
    *_one_by_one(),
    _against("add_many, 500 a call,", "bulk_500", "bee_queue", at_least=0.9, aim=1.5),
    _against("bytes per waiting job", "memory", "bee_queue", at_most=1.1, aim=0.9),
    _against("bytes per waiting job", "memory", "bullmq", below=1.0),
    _against("process at 100", "process_100", "bullmq", at_least=6, aim=8),
    _against("process at 100", "process_100", "bee_queue", at_least=3.7, aim=5),
    _against("process at 100", "process_100", "groupmq_node", at_least=5.2, aim=7),
    _against("add_many in chunks of 1,000", "enqueue", "bullmq", at_least=2.0),
    _against("server time per job, backlog,", "server_time", "bullmq", at_most=0.35),
    _own("server time per job, long vs short backlog", "depth_server_deep", "depth_server_shallow", at_most=1.3),
    _own("elapsed time per job, long vs short backlog", "depth_wall_deep", "depth_wall_shallow", at_most=1.3),
    _own("20 ticks/s of one repeat, run vs expected", "repeats_one_run", "repeats_one_expected", at_least=1.0),
    _own(
        "one hot group, 1 ms a call, batches of 50 vs one by one",
        "hot_group_batch",
        "hot_group_single",
        at_least=10,
        aim=20,
    ),
    _own("process with a rate limit of the queue vs without", "rate_rate", "rate_none", at_least=0.9),
    _own("add with events vs without", "events_add_events", "events_add_silent", at_least=0.9),
    _own("process with events vs without", "events_events", "events_silent", at_least=0.9),
)


def ratio(samples: Samples, top: tuple[str, str], bottom: tuple[str, str]) -> float | None:
    upper, lower = samples.reported(*top), samples.reported(*bottom)
    return upper / lower if upper is not None and lower else None


def judge(samples: Samples, targets: Iterable[Target] = TARGETS) -> list[Verdict]:
    """Verdicts on the targets both sides of which were measured in this run."""
    verdicts = []
    for target in targets:
        value = ratio(samples, target.numerator, target.denominator)
        if value is not None:
            verdicts.append(Verdict(target, value, target.holds(value)))
    return verdicts
