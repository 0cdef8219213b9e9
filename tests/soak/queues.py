"""The queues of a soak run. Their retention is small, so that everything bounded is full after a minute."""

from __future__ import annotations

from typing import Any

from groupmq import Backoff, Breaker, Queue, RateLimit

COMMON: dict[str, Any] = {
    "job_timeout": 5,
    "max_attempts": 3,
    "backoff": Backoff.exponential(base=0.1, max=2),
    "keep_completed": 500,
    "keep_failed": 20,
}
QUEUES: dict[str, dict[str, Any]] = {
    "flow": {},
    "strict": {"on_failed": "hold"},
    "metered": {"breaker": Breaker(failures=3, cooldown=1), "group_rate_limit": RateLimit(20, per=1)},
    "spread": {"partitions": 3},
}
PARTS = {name: options.get("partitions", 1) for name, options in QUEUES.items()}
SHARES = {"flow": 0.6, "strict": 0.12, "metered": 0.12, "spread": 0.16}


def open_queue(name: str, url: str) -> Queue:
    return Queue(name, url, **COMMON, **QUEUES[name])
