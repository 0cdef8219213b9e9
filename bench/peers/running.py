"""A running process of a library: its output and its end."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO

ROOT = Path(__file__).resolve().parent.parent.parent
Figures = dict[str, list[float]]
END_S = 2.0


class PeerFailed(RuntimeError):
    """A library's process ended with an error, gave no result or took too long."""


class Running:
    """A process that prints figures as lines of JSON. If it would run for ever, it exits when its input is closed."""

    def __init__(self, name: str, process: subprocess.Popen[str], errors: IO[str], timeout: float) -> None:
        self._name = name
        self._process = process
        self._errors = errors
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self._lines.put(line)
        self._lines.put(None)

    def said(self, *expected: str) -> Figures:
        """Wait for the next line. Returns its figures, which include the expected ones, each with its samples."""
        line = self._next()
        if line is None:
            raise self._failure()
        return self._figures(line, expected)

    def end(self, *expected: str) -> Figures:
        """Close the input of the process and wait until it has ended. Returns the figures of its last line."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        last = ""
        while (line := self._next()) is not None:
            last = line
        try:
            status = self._process.wait(self._left())
        except subprocess.TimeoutExpired as error:
            raise self._too_long() from error
        if status != 0:
            raise self._failure()
        return self._figures(last, expected)

    def kill(self) -> None:
        """Kill the process, if it has not ended."""
        self._process.kill()
        self._process.wait()
        self._reader.join(END_S)  # a child of the process may hold the pipe a little longer
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None and not self._reader.is_alive():
                stream.close()

    def _next(self) -> str | None:
        try:
            return self._lines.get(timeout=self._left())
        except Empty:
            raise self._too_long() from None

    def _left(self) -> float:
        return max(0.0, self._deadline - time.monotonic())

    def _figures(self, line: str, expected: Sequence[str]) -> Figures:
        try:
            figures = {name: _samples(value) for name, value in json.loads(line).items()}
        except (AttributeError, TypeError, ValueError) as error:
            raise PeerFailed(f"{self._name} gave no result, only {line[-500:]!r}") from error
        missing = set(expected) - set(figures)
        if missing:
            raise PeerFailed(f"{self._name} did not report {', '.join(sorted(missing))}")
        return figures

    def _too_long(self) -> PeerFailed:
        return PeerFailed(f"{self._name} took more than {self._timeout:g} s")

    def _failure(self) -> PeerFailed:
        self._errors.seek(0)
        return PeerFailed(f"{self._name} failed\n{self._errors.read().strip()[-2000:]}")


@contextmanager
def running(name: str, line: Sequence[str], environment: Mapping[str, str], timeout: float) -> Iterator[Running]:
    """Start a process; it is killed if it still runs at the end of the context."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            line,
            cwd=ROOT,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        it = Running(name, process, errors, timeout)
        try:
            yield it
        finally:
            it.kill()


def _samples(value: float | list[float]) -> list[float]:
    return [float(one) for one in value] if isinstance(value, list) else [float(value)]
