"""A queue `orders` whose stored settings are not the defaults, and handlers for it."""

from __future__ import annotations

from typing import Any

from groupmq import Backoff, Job
from groupmq.protocol.keys import Keys

META = Keys("groupmq", "orders").meta
STORED: dict[str, Any] = {
    "job_timeout": 45,
    "max_attempts": 7,
    "backoff": Backoff.fixed(0.001),
    "on_retry": "yield",
    "keep_failed": 5000,
}


async def nothing(_job: Job) -> None: ...


async def fails(_job: Job) -> None:
    raise ValueError("on purpose")
