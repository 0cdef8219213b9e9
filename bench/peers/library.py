"""A library under test, and how its processes are run."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bench.metrics import OURS
from bench.peers.running import ROOT, Figures, Running, running

FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Outcome:
    """The report of a library's process: the number of jobs, and their time without start-up.

    `handled` differs from `jobs` only if a worker was stopped before its queue was empty.
    """

    jobs: int
    seconds: float
    handled: int

    @property
    def rate(self) -> float:
        return self.jobs / self.seconds


@dataclass(frozen=True, slots=True)
class Library:
    """`command` is the start of a command line that takes an action (`enqueue`, `process` ...) and options.

    `most` is the highest concurrency it is measured at.
    """

    key: str
    title: str
    version: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    kind: Literal["ours", "node", "python"] = "ours"
    most: int = 100

    def run(self, action: str, *, port: int, timeout: float, **options: int | str) -> Outcome:
        """Run `enqueue` or `process`, which every library supports."""
        found = self.ask(action, "jobs", "seconds", port=port, timeout=timeout, **options)
        jobs = found["jobs"]
        return Outcome(int(jobs[0]), found["seconds"][0], int(found.get("handled", jobs)[0]))

    def ask(self, action: str, *expected: str, port: int, timeout: float, **options: int | str) -> Figures:
        """Run one action to its end and return its figures, which include the expected ones, each with its samples.

        The process is killed if it exceeds `timeout`.
        """
        with self.start(action, port=port, timeout=timeout, **options) as process:
            return process.end(*expected)

    def start(self, action: str, *, port: int, timeout: float, **options: int | str) -> AbstractContextManager[Running]:
        """Start an action, which must end within `timeout`."""
        line = [*self.command, action, "--port", str(port)]
        for name, value in options.items():
            line += [f"--{name}", str(value)]
        return running(f"{self.title}: {action}", line, self.environment, timeout)


def ours() -> Library:
    """groupmq of this checkout, with the interpreter that runs the benchmark."""
    source = ROOT / "src"
    path = os.pathsep.join(filter(None, [str(source), os.environ.get("PYTHONPATH", "")]))
    command = (sys.executable, "-m", "bench.peers.groupmq_py")
    return Library(OURS, "groupmq", _our_version(), command, {"PYTHONPATH": path})


def _our_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("groupmq")
    except PackageNotFoundError:
        return "from source"
