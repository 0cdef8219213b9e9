"""How much is measured: one place for every count of the benchmark."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Counts of one run.

    `jobs` is large on purpose: Node needs some ten thousand jobs until its compiler has settled, and a small
    count would flatter us. `chunk` and `inflight` are what BullMQ likes best; every library gets the same.
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
    depth_takes: int = 5
    calibration_jobs: int = 2_000
    timeout: float = 120.0

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise ValueError(f"rounds: expected at least 1, got {self.rounds}")
        if self.jobs < self.groups:
            raise ValueError(f"jobs: expected at least one per group ({self.groups}), got {self.jobs}")

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
    calibration_jobs=500,
    timeout=60.0,
)
"""A smoke run: proves that everything works, says little about speed."""
