"""The plan of a worker process: made once from the command line, and handed to each process as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class WorkerPlan:
    """The options of `groupmq worker`. The three dictionaries hold only what was given."""

    spec: str
    url: str | None = None
    queues: tuple[str, ...] = ()
    prefix: str = "groupmq"
    shared: dict[str, Any] = field(default_factory=dict)
    """Settings that are stored with the queue."""
    queue_options: dict[str, Any] = field(default_factory=dict)
    worker_options: dict[str, Any] = field(default_factory=dict)
    concurrency: int | None = None
    """Jobs at once in each process, of all its queues together; None = 1."""
    flags: tuple[str, ...] = ()
    """Options that a configured Worker has itself, as they were spelled on the command line."""
    burst: bool = False
    drain_timeout: float = 30.0
    unreachable_timeout: float | None = None
    log_level: str = "info"
    log_format: str = "text"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> WorkerPlan:
        fields = json.loads(text)
        return cls(**fields | {name: tuple(fields[name]) for name in ("flags", "queues")})
