"""The health of a worker, its current jobs, and its presence on the server."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from groupmq.client.job import Job
from groupmq.core.version import __version__
from groupmq.core.worker_options import WorkerOptions
from groupmq.protocol import functions


@dataclass(frozen=True, slots=True)
class CurrentJob:
    """A job that runs in this worker, and how many seconds it has been running."""

    job: Job
    processing_time: float


@dataclass(frozen=True, slots=True)
class Health:
    """The health of a worker. `alive`: its loop has advanced lately. `ready`: the server has answered lately."""

    alive: bool
    ready: bool
    loop_seen: float
    """Seconds since the event loop was seen to advance."""
    server_seen: float
    """Seconds since the server last answered."""
    blocked_for: float = 0.0
    """Seconds that a handler has been blocking the event loop; 0 = none does."""
    blocked_in: str | None = None
    """The job that blocks it, and the line of code where it hangs."""


def presence(options: WorkerOptions, running: Sequence[str], blocked_for: float) -> str:
    """The text that a heartbeat stores about its worker; `get_workers` reads it."""
    return json.dumps(
        {
            "name": options.name,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "concurrency": options.concurrency,
            "current_jobs": len(running),
            "jobs": running[:100],
            "heartbeat": options.heartbeat,
            "blocked": round(blocked_for, 3),
            "version": __version__,
            "library": functions.library().name,
            "max_attempts": options.own_max_attempts,
        }
    )
