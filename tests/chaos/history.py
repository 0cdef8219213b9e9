"""The history: each process writes what it saw as JSON lines to its own file. `t` is the machine's monotonic clock.

Each line is written with one system call, either before the action it describes can have any effect or after it has
taken effect: `start` is written after the lease was granted, `end` before the outcome is reported. The order of lines
of different processes is therefore evidence.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Line = dict[str, Any]
FOLDER, OWNER, ACTOR = "CHAOS_HISTORY", "CHAOS_OWNER", "CHAOS_ACTOR"
"""Environment variables for handlers that run in a child process of a worker, which write to the history too."""


class HistoryFile:
    """Appends lines to the file of this process."""

    def __init__(self, folder: str, actor: str, owner: int | None = None) -> None:
        self._actor = actor
        self._pid = os.getpid()
        self._owner = owner or self._pid
        path = Path(folder) / f"{actor}-{self._pid}.jsonl"
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(self, kind: str, /, **more: Any) -> None:
        line = {"k": kind, "t": time.monotonic(), "pid": self._owner, "actor": self._actor, **more}
        os.write(self._file, json.dumps(line, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")


def of_this_process() -> HistoryFile:
    """The history file of a handler, in whatever process it runs."""
    return HistoryFile(os.environ[FOLDER], os.environ[ACTOR], int(os.environ[OWNER]))


def read(folder: Path) -> list[Line]:
    """All lines of all processes, ordered by time."""
    return sorted(
        (line for path in sorted(folder.glob("*.jsonl")) for line in _lines(path)), key=lambda line: line["t"]
    )


def _lines(path: Path) -> Iterator[Line]:
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):  # a process that was killed may leave half a line
                yield json.loads(line)


def digest(data: object) -> str:
    """A hash of a payload, to detect any change of it."""
    text = json.dumps(data, sort_keys=True, ensure_ascii=False)
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:16]
