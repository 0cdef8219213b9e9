"""Promises that are checked on the observed starts alone, independently of the model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from groupmq.core.limits import RateLimit
from tests.model.model import Model


class Promises:
    def __init__(self) -> None:
        self.starts: list[int] = []
        self.group_starts: dict[str, list[int]] = defaultdict(list)
        self.excepted: set[str] = set()

    def except_for(self, group: str) -> None:
        """Exempt a group whose rate changes: starts under another rate prove nothing."""
        self.excepted.add(group)

    def started(self, model: Model, ids: Iterable[str], now: int) -> None:
        """These jobs have just started, all at once."""
        for job_id in ids:
            self.starts.append(now)
            group = model.jobs[job_id].group
            if group:
                self.group_starts[group].append(now)
                late = [job.id for job in model.in_state("delayed", group) if job.due <= now]
                assert not late, f"{job_id} starts, though {late} of its group are due and have not joined it"
        assert_rate(self.starts, model.options.rate_limit)
        for group in self.group_starts.keys() - self.excepted:
            assert_rate(self.group_starts[group], model.options.group_rate_limit)
        if model.options.exclusive:
            workers = {job.lease.worker for job in model.jobs.values() if job.lease}
            assert len(workers) <= 1, f"{sorted(workers)} work at the same time"


def assert_rate(starts: list[int], limit: RateLimit | None) -> None:
    """Check that more than the window lies between each start and the n-th after it."""
    if limit is not None:
        count, per = limit.packed()
        for early, late in zip(starts, starts[count:], strict=False):
            assert late - early > per, f"{count + 1} starts from {early} to {late}, {count} in {per} ms are allowed"
