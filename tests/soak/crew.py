"""The processes of a soak run. Two workers stay to the end; others are replaced, some of them killed with kill -9."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).parents[2]
STAYERS, VISITORS = 2, 2
CHANGE = 20.0
"""Seconds after which one visitor is replaced."""
KILLED = 0.4
"""Share of visitors that are killed instead of being asked to exit."""
LEAVE_WITHIN = 15.0
DRAIN_WITHIN = 330.0


class Crew:
    def __init__(self, url: str, folder: Path, *, rate: float, every: float, seed: int) -> None:
        self._shared = {"url": url, "rate": rate, "every": every, "seed": seed, "concurrency": 8}
        self._folder = folder
        self._random = Random(seed)
        self._next = time.monotonic() + CHANGE
        self._leaving: list[tuple[float, subprocess.Popen[bytes]]] = []
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.churn: Counter[str] = Counter()

    def start_all(self) -> None:
        self._start("producer", "producer")
        for n in range(STAYERS):
            self._start(f"stayer-{n + 1}", "worker")
        for _ in range(VISITORS):
            self._visit()

    def _visit(self) -> None:
        self.churn["started"] += 1
        self._start(f"visitor-{self.churn['started']}", "worker")

    def _start(self, name: str, role: str) -> None:
        settings = self._shared | {"role": role, "status": str(self.status_file(name))}
        with (self._folder / f"{name.partition('-')[0]}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", "tests.soak.process", json.dumps(settings)],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )

    def status_file(self, name: str) -> Path:
        return self._folder / f"{name}.status"

    def status(self, name: str) -> dict[str, Any]:
        """The last status that the process has written."""
        with contextlib.suppress(OSError):
            known: dict[str, Any] = json.loads(self.status_file(name).read_text(encoding="utf-8"))
            return known
        return {}

    def is_filled(self) -> bool:
        """Whether the producer has filled the queues, after which the load begins."""
        self.step()
        return "filled" in self.status("producer")

    def step(self) -> None:
        """Check that all processes run, and replace a visitor every CHANGE seconds."""
        for name, process in self.processes.items():
            if process.poll() is not None:
                raise AssertionError(f"{name} ended with code {process.returncode}: see its log in {self._folder}")
        self._reap()
        if time.monotonic() < self._next:
            return
        self._next += CHANGE
        name = self._random.choice([name for name in self.processes if name.startswith("visitor")])
        process = self.processes.pop(name)
        if self._random.random() < KILLED:
            self.churn["killed"] += 1
            process.kill()
        else:
            self.churn["left"] += 1
            process.send_signal(signal.SIGTERM)
        self._leaving.append((time.monotonic() + LEAVE_WITHIN, process))
        self.status_file(name).unlink(missing_ok=True)
        self._visit()

    def _reap(self) -> None:
        for deadline, process in list(self._leaving):
            if process.poll() is not None:
                self._leaving.remove((deadline, process))
                _close(process)
            elif time.monotonic() > deadline:
                self.churn["late"] += 1
                process.kill()

    def finish(self) -> list[str]:
        """End the load, drain the queues and stop all processes. Returns those that did not exit in order."""
        late = self._end(["producer"], DRAIN_WITHIN)
        return late + self._end(list(self.processes), LEAVE_WITHIN)

    def _end(self, names: list[str], within: float) -> list[str]:
        deadline, late = time.monotonic() + within, []
        for name in names:
            self.processes[name].send_signal(signal.SIGTERM)
        for name in names:
            process = self.processes.pop(name)
            try:
                code = process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                code = process.wait()
            if code:
                late.append(f"{name} (code {code})")
            _close(process)
        return late

    def kill_all(self) -> None:
        for process in [*self.processes.values(), *(one for _, one in self._leaving)]:
            process.kill()
            process.wait()
            _close(process)


def _close(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()


def memory_of(pid: int) -> int:
    """Resident memory in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptors_of(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def seconds_of(pid: int) -> float:
    """CPU time in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
