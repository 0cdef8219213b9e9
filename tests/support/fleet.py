"""Real worker processes that tests can start, freeze and kill, with one common history."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from groupmq.sync import Queue
from tests.support.history import History, Line
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]


class Fleet:
    """The worker processes of one queue.

    Example:
        with Fleet(server.url, "orders", job_timeout=1) as fleet:
            first, second = fleet.start(2)
            fleet.kill(first)
        fleet.history().check(added)
    """

    def __init__(
        self,
        url: str,
        queue: str,
        *,
        concurrency: int = 4,
        blocking_timeout: float = 1.0,
        close_timeout: float = 5.0,
        worker: dict[str, Any] | None = None,
        **queue_options: Any,
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="groupmq-fleet-")
        self._file = Path(self._folder.name) / "history.jsonl"
        self._file.touch()
        self._read_to, self._lines = 0, list[Line]()
        self._settings: dict[str, Any] = {
            "url": url,
            "queue": queue,
            "history": str(self._file),
            "close_timeout": close_timeout,
            "queue_options": queue_options,
            "worker_options": {"concurrency": concurrency, "blocking_timeout": blocking_timeout, **(worker or {})},
        }
        self._queue_options = queue_options
        self.processes: list[subprocess.Popen[bytes]] = []
        self._history: History | None = None

    def start(self, n: int = 1, **settings: Any) -> list[subprocess.Popen[bytes]]:
        """Start `n` workers and wait until they are ready. An existing queue gets the settings of the fleet."""
        if self._queue_options and not self.processes:
            with Queue(self._settings["queue"], self._settings["url"], **self._queue_options) as queue:
                queue.reconfigure()
        told = json.dumps(self._settings | settings, default=lambda shared: shared.described())
        command = [sys.executable, "-m", "tests.support.worker_process", told]
        new = [subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE) for _ in range(n)]
        self.processes += new
        pids = {process.pid for process in new}
        self.wait_for(lambda: pids <= {line["pid"] for line in self.lines("ready")}, "all workers are ready")
        return new

    def wait_for(self, predicate: Callable[[], object], description: str, timeout: float = 20) -> None:
        wait_until(predicate, description, timeout)

    def lines(self, *kinds: str) -> list[Line]:
        """The lines of these kinds that were written so far."""
        with self._file.open("rb") as file:
            file.seek(self._read_to)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._read_to += len(line)
                self._lines.append(json.loads(line))
        return [line for line in self._lines if line["kind"] in kinds]

    def history(self) -> History:
        """The history up to now; after the end of the context, the complete one."""
        return self._history or History.read(self._file)

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Send SIGKILL and record it in the history: outcomes that the process had not reported are lost."""
        process.kill()
        process.wait()
        self.note_death(process)

    def note_death(self, process: subprocess.Popen[bytes]) -> None:
        line = {"kind": "kill", "t": time.monotonic(), "pid": process.pid}
        with self._file.open("ab", buffering=0) as file:
            file.write(json.dumps(line).encode() + b"\n")

    def freeze(self, process: subprocess.Popen[bytes]) -> None:
        os.kill(process.pid, signal.SIGSTOP)

    def thaw(self, process: subprocess.Popen[bytes]) -> None:
        os.kill(process.pid, signal.SIGCONT)

    def close(self) -> None:
        """Close every worker gracefully; fail if a process does not exit."""
        alive = [process for process in self.processes if process.poll() is None]
        for process in alive:
            process.terminate()
        for process in alive:
            code = process.wait(15)
            assert code == 0, f"worker process {process.pid} ended with {code}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.close()
        finally:
            for process in self.processes:
                process.kill()
                process.wait()
                if process.stdin is not None:
                    process.stdin.close()
            self._history = self.history()
            self._folder.cleanup()
