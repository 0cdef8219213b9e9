"""What a worker shows about itself: health checks, current jobs, and its presence on the server."""

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
    """A job that runs in this worker, and for how many seconds already."""

    job: Job
    processing_time: float


@dataclass(frozen=True, slots=True)
class Health:
    """How a worker is. `alive`: its loop has advanced lately. `ready`: the server has answered lately."""

    alive: bool
    ready: bool
    loop_seen: float
    """Seconds since the event loop was seen to advance."""
    server_seen: float
    """Seconds since the server last answered."""
    blocked_for: float = 0.0
    """Seconds that a handler has been blocking the event loop; 0 = none does."""
    blocked_in: str | None = None
    """The job that does, and the line of code it hangs in."""


def presence(options: WorkerOptions, running: Sequence[str], blocked_for: float) -> str:
    """What a heartbeat stores about its worker, read by `get_workers`."""
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
        }
    )
