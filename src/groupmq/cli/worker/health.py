"""The health of a worker process, and the pages of its health port."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from groupmq.cli.output.http_pages import HttpPage, Make

_BLOCKED = 2.0


@dataclass
class ProcessReport:
    """The health of one process. Times are those of the monotonic clock, which all processes of the machine share."""

    process: int
    pid: int
    state: str = "starting"
    """starting, waiting (for the queue to be made), running or draining."""
    loop_seen: float = field(default_factory=time.monotonic)
    patience: float = 300.0
    """Seconds the event loop may stand still; long at first, since importing a module may take long."""
    ready: bool = False
    counters: dict[str, float] = field(default_factory=dict)
    workers: list[dict[str, Any]] = field(default_factory=list)
    """One entry per worker: queue, concurrency, counters."""
    bequests: list[str] = field(default_factory=list)
    """One text per worker, with which `Worker.take_back` gives its jobs back if the process dies. Never shown: URLs
    hold passwords."""

    def is_alive(self) -> bool:
        return time.monotonic() - self.loop_seen <= self.patience

    def blocked_for(self) -> float:
        """Seconds for which the event loop has not advanced. It reports each second, so less than two mean nothing."""
        idle = time.monotonic() - self.loop_seen
        return idle if self.state == "running" and idle >= _BLOCKED else 0.0

    def is_ready(self) -> bool:
        return self.ready and self.state in ("running", "waiting")

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, text: bytes) -> ProcessReport:
        return cls(**json.loads(text))

    def shown(self) -> dict[str, Any]:
        idle = round(time.monotonic() - self.loop_seen, 1)
        return {
            "process": self.process,
            "pid": self.pid,
            "state": self.state,
            "loop_seen": idle,
            "blocked_for": round(self.blocked_for(), 1),
            "ready": self.ready,
        }


def probes(reports: Callable[[], Iterable[ProcessReport]]) -> dict[str, Make]:
    """The pages of a health port: alive if every loop advances, ready if at least one process can work."""

    def page(good: bool, seen: list[ProcessReport]) -> HttpPage:
        body = {"status": "ok" if good else "failing", "processes": [report.shown() for report in seen]}
        return 200 if good else 503, "application/json", json.dumps(body).encode() + b"\n"

    def alive() -> HttpPage:
        seen = list(reports())
        return page(all(report.is_alive() for report in seen), seen)

    def ready() -> HttpPage:
        seen = list(reports())
        return page(any(report.is_ready() for report in seen), seen)

    return {"/livez": alive, "/healthz": alive, "/readyz": ready}
