"""The settings of the benchmark: all its counts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Counts of one run.

    `jobs` is large on purpose: Node needs some ten thousand jobs to warm up, and a small count would favour
    groupmq. BullMQ is fastest with these values of `chunk` and `inflight`; every library gets the same.
    Variants of our own queue differ by a few per cent, so they alternate in many small slices.
    """

    rounds: int = 3
    groups: int = 1_000
    jobs: int = 50_000
    jobs_at_10: int = 30_000
    jobs_at_1: int = 8_000
    jobs_per_short_group: int = 10
    chunk: int = 1_000
    inflight: int = 4
    shallow: int = 10_000
    deep: int = 1_000_000
    depth_step: int = 10_000
    depth_takes: int = 11
    slices: int = 21
    slice_jobs: int = 5_000
    slice_groups: int = 200
    operations_jobs: int = 100_000
    operations_groups: int = 10_000
    operations_deep: int = 20_000
    delays: int = 10_000
    delays_seconds: int = 10
    repeats_seconds: int = 5
    repeats_ms: int = 500
    repeats_many: int = 200
    repeats_most: int = 2_000
    turns: int = 2_000
    turn_batch: int = 10
    hot_group_jobs: int = 20_000
    hot_group_batch: int = 50
    roundtrip_backlog: int = 20_000
    roundtrip_kept: int = 1_000
    roundtrips: int = 1_000
    roundtrip_warmup: int = 100
    roundtrip_seconds: int = 10
    one_by_one: int = 24_000
    one_by_one_at_10: int = 16_000
    one_by_one_at_1: int = 8_000
    handlers_1ms: int = 10_000
    handlers_10ms: int = 20_000
    kinds_jobs: int = 10_000
    bulk_jobs: int = 20_000
    bulk_chunk: int = 500
    adds: int = 1_000
    adds_warmup: int = 200
    fixed_blocks: int = 40
    trickle_seconds: int = 2
    trickle_waited_seconds: int = 1
    trickle_slow_seconds: int = 4
    trickle_slow_waited_seconds: int = 2
    trickle_warmup: int = 200
    python_jobs: int = 10_000
    python_jobs_at_10: int = 5_000
    python_jobs_at_1: int = 2_000
    python_rounds: int = 2
    python_timeout: float = 60.0
    calibration_jobs: int = 2_000
    timeout: float = 120.0

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise ValueError(f"rounds: expected at least 1, got {self.rounds}")
        if self.jobs < self.groups:
            raise ValueError(f"jobs: expected at least one per group ({self.groups}), got {self.jobs}")

    @property
    def ticks_many(self) -> int:
        return self.repeats_many * 1000 // self.repeats_ms

    @property
    def ticks_most(self) -> int:
        return self.repeats_most * 1000 // self.repeats_ms

    def fill(self, template: str) -> str:
        """A text that names counts of this run: `{0.jobs:,} jobs`."""
        return template.format(self)

    def process_jobs(self, concurrency: int) -> int:
        """The jobs of a run: fewer at low concurrency, where each costs a round trip, so that no run takes too long."""
        return {1: self.jobs_at_1, 10: self.jobs_at_10}.get(concurrency, self.jobs)

    def one_by_one_jobs(self, concurrency: int) -> int:
        return {1: self.one_by_one_at_1, 10: self.one_by_one_at_10}.get(concurrency, self.one_by_one)

    def python_process_jobs(self, concurrency: int) -> int:
        return {1: self.python_jobs_at_1, 10: self.python_jobs_at_10}.get(concurrency, self.python_jobs)


QUICK = Settings(
    rounds=1,
    groups=200,
    jobs=5_000,
    jobs_at_10=3_000,
    jobs_at_1=1_000,
    shallow=2_000,
    deep=20_000,
    depth_step=2_000,
    depth_takes=2,
    slices=3,
    slice_jobs=2_000,
    operations_jobs=10_000,
    operations_groups=1_000,
    operations_deep=2_000,
    delays=2_000,
    delays_seconds=2,
    repeats_seconds=2,
    repeats_most=500,
    turns=200,
    roundtrip_backlog=5_000,
    roundtrips=200,
    roundtrip_seconds=5,
    one_by_one=3_000,
    one_by_one_at_10=2_000,
    one_by_one_at_1=1_000,
    handlers_1ms=1_000,
    handlers_10ms=2_000,
    kinds_jobs=1_000,
    bulk_jobs=4_000,
    adds=200,
    adds_warmup=50,
    fixed_blocks=5,
    trickle_seconds=1,
    trickle_slow_seconds=1,
    trickle_slow_waited_seconds=1,
    trickle_warmup=100,
    python_jobs=1_000,
    python_jobs_at_10=500,
    python_jobs_at_1=200,
    calibration_jobs=500,
    timeout=60.0,
)
"""A smoke run: it shows that everything works, and little about speed."""
