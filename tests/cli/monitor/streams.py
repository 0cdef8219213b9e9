"""The monitor in a pipe."""

from __future__ import annotations

import re
import signal
import subprocess

from tests.cli.operating import PROGRAM, Command

QUICK = ("--interval", "0.1")


class Stream:
    """One run of the monitor whose output is a pipe."""

    def __init__(self, command: Command, *words: str) -> None:
        self.process = subprocess.Popen(
            [*PROGRAM, "monitor", *QUICK, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=command.environment(),
        )

    def until(self, pattern: str) -> str:
        """Read lines until one matches. Returns that line."""
        assert self.process.stdout is not None
        for row in self.process.stdout:
            if re.search(pattern, row):
                return row
        raise AssertionError(f"the output ended before {pattern!r}")

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=30)
        return self.process.returncode, err
