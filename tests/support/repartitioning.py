"""`groupmq queue repartition` as a process that is killed: `python -m tests.support.repartitioning JSON`.

{"url", "queue", "to", "kill": after how many answers of the server it kills itself with SIGKILL, 0 = never}. Says on
standard output how many answers there were. A run that was killed is gone on with at once, not after a while.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from groupmq.cli import main
from groupmq.sync.connection.function_client import FunctionClient
from groupmq.sync.partitions import moving

ROOT = Path(__file__).parents[2]


def start(url: str, queue: str, to: int, kill: int = 0) -> subprocess.Popen[str]:
    told = json.dumps({"url": url, "queue": queue, "to": to, "kill": kill})
    command = [sys.executable, "-m", "tests.support.repartitioning", told]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run(url: str, queue: str, to: int, kill: int = 0) -> tuple[int, str]:
    """To its end: the code, and what it said."""
    process = start(url, queue, to, kill)
    said, _ = process.communicate(timeout=100)
    return process.returncode, said


def die_after(answers: int) -> Callable[[], int]:
    """Count the answers of the server; after so many the process is killed. Returns how many there were so far."""
    counted = 0

    def count(send: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*args: Any, **options: Any) -> Any:
            nonlocal counted
            answer = send(*args, **options)
            counted += 1
            if counted == answers:
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

        return counting

    for name in ("command", "call_closed"):
        setattr(FunctionClient, name, count(getattr(FunctionClient, name)))
    return lambda: counted


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    moving.ABANDONED = 0.0
    answers = die_after(given["kill"])
    sys.argv[1:] = [
        "queue",
        "repartition",
        given["queue"],
        "--to",
        str(given["to"]),
        "--redis-url",
        given["url"],
        "--json",
    ]
    try:
        main()
    finally:
        print(json.dumps({"answers": answers()}))
