"""`groupmq queue repartition` as a process that is killed: `python -m tests.support.repartitioning JSON`.

The JSON is {"url", "queue", "to", "kill"}; the process kills itself with SIGKILL after `kill` answers of the server
(0 = never). It prints the number of answers. A repartition that was killed is resumed at once, without the usual wait.
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
    """Run it to its end. Returns its exit code and output."""
    process = start(url, queue, to, kill)
    said, _ = process.communicate(timeout=100)
    return process.returncode, said


def die_after(answers: int) -> Callable[[], int]:
    """Count the answers of the server and kill this process after `answers` of them. Returns a function that returns
    the current count."""
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
