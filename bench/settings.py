"""How much is measured: one place for every count of the benchmark."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Counts of one run.

    `jobs` is large on purpose: Node needs some ten thousand jobs until its compiler has settled, and a small
    count would flatter us. `chunk` and `inflight` are what BullMQ likes best; every library gets the same.
    Variants of our own queue differ by a few per cent, so they take turns in many small slices.
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
    depth_takes: int = 15
    slices: int = 31
    slice_jobs: int = 5_000
    slice_groups: int = 200
    delays: int = 10_000
    delays_seconds: int = 10
    repeats_seconds: int = 5
    repeats_ms: int = 500
    repeats_many: int = 200
    repeats_most: int = 2_000
    turns: int = 2_000
    turn_batch: int = 10
    roundtrip_backlog: int = 20_000
    roundtrip_kept: int = 1_000
    roundtrips: int = 1_000
    roundtrip_warmup: int = 100
    roundtrip_seconds: int = 10
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
        """Fewer jobs where each costs a round trip, so that a run stays bounded in time."""
        return {1: self.jobs_at_1, 10: self.jobs_at_10}.get(concurrency, self.jobs)


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
    delays=2_000,
    delays_seconds=2,
    repeats_seconds=2,
    repeats_most=500,
    turns=200,
    roundtrip_backlog=5_000,
    roundtrips=200,
    roundtrip_seconds=5,
    calibration_jobs=500,
    timeout=60.0,
)
"""A smoke run: proves that everything works, says little about speed."""
