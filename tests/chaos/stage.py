"""The processes of a run: starts, kills, freezes, restarts and ends them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from tests.chaos.cast import Actor
from tests.chaos.history import HistoryFile

ROOT = Path(__file__).parents[2]
START = 60.0


class Process:
    """A process that the nursery forked. Once ended, it stays a zombie until the nursery has reported it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.code: int | None = None
        self.ended = threading.Event()

    def send(self, number: signal.Signals) -> None:
        # It may have ended a moment ago without the nursery having reported it yet.
        if self.code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        self.ended.wait(START)


class Nursery:
    """Starts processes through the fork server, and receives their exit codes."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.nursery"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._made: dict[int, Process] = {}
        self._began: dict[str, Process] = {}
        self._change = threading.Condition()
        threading.Thread(target=self._listen, name="nursery", daemon=True).start()
        self._wait_for("ready")

    def start(self, settings: dict[str, Any]) -> Process:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(settings).encode() + b"\n")
        self._process.stdin.flush()
        return self._wait_for(settings["name"])

    def _wait_for(self, name: str) -> Process:
        with self._change:
            assert self._change.wait_for(lambda: name in self._began, START), f"{name} did not start"
            return self._began.pop(name)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            told = json.loads(line)
            with self._change:
                if "ended" in told:
                    process = self._made.pop(told["ended"])
                    process.code = told["code"]
                    process.ended.set()
                else:
                    process = Process(told.get("began", 0))
                    self._made[process.pid] = process
                    self._began[told.get("name", "ready")] = process
                self._change.notify_all()

    def close(self) -> None:
        """Stop the fork server, which ends all processes."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(START)


class Stage:
    """The running processes. Only this object starts and ends them."""

    def __init__(
        self, cast: Iterable[Actor], history: HistoryFile, shared: dict[str, Any], urls: dict[str, str]
    ) -> None:
        """`shared`: settings of all processes; `urls`: the server's URL for each of them."""
        self._cast = {actor.name: actor for actor in cast}
        self._history = history
        self._shared = shared
        self._urls = urls
        self._lives: Counter[str] = Counter()
        self._nursery = Nursery()
        self.processes: dict[str, Process] = {}
        self.frozen: set[str] = set()

    def start(self, name: str) -> None:
        actor = self._cast[name]
        self._lives[name] += 1
        told = {"name": name, "role": actor.role, "url": self._urls[name], "life": self._lives[name]}
        process = self._nursery.start(self._shared | actor.settings | told)
        self.processes[name] = process
        self._history.note("spawn", name=name, role=actor.role, of=process.pid)

    def names(self, *roles: str) -> list[str]:
        return [name for name, actor in self._cast.items() if not roles or actor.role in roles]

    def works(self) -> list[dict[str, Any]]:
        """The workers of all worker processes, each with its queue and options."""
        return [work for name in self.names("worker") for work in self._cast[name].settings["works"]]

    def alive(self, name: str) -> bool:
        process = self.processes.get(name)
        return process is not None and process.code is None

    def kill(self, name: str) -> int | None:
        """Send SIGKILL. Returns the process id; None if the process was gone already."""
        if not self.alive(name):
            return None
        process = self.processes[name]
        self.frozen.discard(name)
        process.kill()
        return process.pid

    def freeze(self, name: str) -> int | None:
        if not self.alive(name) or name in self.frozen:
            return None
        self.frozen.add(name)
        self.processes[name].send(signal.SIGSTOP)
        return self.processes[name].pid

    def thaw(self, name: str, pid: int) -> None:
        process = self.processes.get(name)
        if process is not None and name in self.frozen and process.pid == pid:
            self.frozen.discard(name)
            process.send(signal.SIGCONT)

    def thaw_all(self) -> None:
        for name in tuple(self.frozen):
            self.thaw(name, self.processes[name].pid)

    def leave(self, name: str) -> int | None:
        """Send SIGTERM."""
        if not self.alive(name) or name in self.frozen:
            return None
        self.processes[name].send(signal.SIGTERM)
        return self.processes[name].pid

    def fallen(self, among: Collection[str] | None = None) -> list[str]:
        """Names of processes that have ended since the last call, each returned once. `among`: only these names."""
        found = []
        for name, process in list(self.processes.items()):
            code = process.code if among is None or name in among else None
            if code is not None:
                self._history.note("exit", name=name, of=process.pid, code=code)
                del self.processes[name]
                self.frozen.discard(name)
                found.append(name)
        return found

    def end(self, *roles: str, within: float) -> list[str]:
        """Send SIGTERM to all processes of these roles. Returns the names of those that had to be killed."""
        names = [name for name in self.names(*roles) if self.alive(name)]
        for name in names:
            self.leave(name)
        deadline, late = time.monotonic() + within, []
        for name in names:
            if not self.processes[name].ended.wait(max(0.1, deadline - time.monotonic())):
                late.append(name)
                self.kill(name)
        self.fallen(names)  # processes of other roles stay, for the injector to restart
        return late

    def close(self) -> None:
        """End all processes that are left."""
        self._nursery.close()
