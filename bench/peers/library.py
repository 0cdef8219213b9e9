"""A library under test and how one of its processes is run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.metrics import OURS

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent


class PeerFailed(RuntimeError):
    """A library's process ended with an error, gave no result or took too long."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a library's process says about itself: how many jobs, in which time without start-up.

    `handled` differs from `jobs` only where a worker was stopped before its queue was empty.
    """

    jobs: int
    seconds: float
    handled: int

    @property
    def rate(self) -> float:
        return self.jobs / self.seconds


@dataclass(frozen=True, slots=True)
class Library:
    """`command` is the start of a command line that takes `enqueue` or `process` and the shared options."""

    key: str
    title: str
    version: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(self, action: str, *, port: int, timeout: float, **options: int | str) -> Outcome:
        """Add or process, which every library can."""
        found = self.ask(action, "jobs", "seconds", port=port, timeout=timeout, **options)
        jobs = found["jobs"]
        return Outcome(int(jobs[0]), found["seconds"][0], int(found.get("handled", jobs)[0]))

    def ask(
        self, action: str, *expected: str, port: int, timeout: float, **options: int | str
    ) -> dict[str, list[float]]:
        """Run one action to its end and return its figures, the expected ones among them, each with its samples.

        The process is killed if it exceeds `timeout`.
        """
        line = [*self.command, action, "--port", str(port)]
        for name, value in options.items():
            line += [f"--{name}", str(value)]
        try:
            done = subprocess.run(
                line,
                cwd=ROOT,
                env={**os.environ, **self.environment},
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise PeerFailed(f"{self.title}: {action} took more than {timeout:g} s") from error
        if done.returncode != 0:
            raise PeerFailed(f"{self.title}: {action} failed\n{done.stderr.strip()[-2000:]}")
        try:
            said = json.loads(done.stdout.strip().splitlines()[-1])
            figures = {name: _samples(value) for name, value in said.items()}
            missing = set(expected) - set(figures)
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            raise PeerFailed(f"{self.title}: {action} gave no result, only {done.stdout[-500:]!r}") from error
        if missing:
            raise PeerFailed(f"{self.title}: {action} did not say {', '.join(sorted(missing))}")
        return figures


def _samples(value: float | list[float]) -> list[float]:
    return [float(one) for one in value] if isinstance(value, list) else [float(value)]


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
