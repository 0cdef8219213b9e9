"""The processes of a run: started, killed, frozen, started again, and ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from tests.chaos.cast import Actor
from tests.chaos.diary import Diary

ROOT = Path(__file__).parents[2]


class Stage:
    """Who plays at the moment. Nobody else starts or ends these processes."""

    def __init__(self, cast: Iterable[Actor], diary: Diary, shared: dict[str, Any], urls: dict[str, str]) -> None:
        """`shared`: settings for all; `urls`: where each of them finds the server."""
        self._cast = {actor.name: actor for actor in cast}
        self._diary = diary
        self._shared = shared
        self._urls = urls
        self._lives: Counter[str] = Counter()
        self._all: list[subprocess.Popen[bytes]] = []
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.frozen: set[str] = set()

    def start(self, name: str) -> None:
        actor = self._cast[name]
        self._lives[name] += 1
        told = {"name": name, "role": actor.role, "url": self._urls[name], "life": self._lives[name]}
        command = [sys.executable, "-m", "tests.chaos.actor", json.dumps(self._shared | actor.settings | told)]
        log = (Path(self._shared["history"]) / f"{name}.log").open("ab")
        with log:
            process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=log, stderr=log)
        self.processes[name] = process
        self._all.append(process)
        self._diary.note("spawn", name=name, role=actor.role, of=process.pid)

    def names(self, *roles: str) -> list[str]:
        return [name for name, actor in self._cast.items() if not roles or actor.role in roles]

    def alive(self, name: str) -> bool:
        process = self.processes.get(name)
        return process is not None and process.poll() is None

    def kill(self, name: str) -> int | None:
        """kill -9; the process id, None if it was gone already."""
        if not self.alive(name):
            return None
        process = self.processes[name]
        self.frozen.discard(name)
        process.kill()
        process.wait()
        return process.pid

    def freeze(self, name: str) -> int | None:
        if not self.alive(name) or name in self.frozen:
            return None
        self.frozen.add(name)
        pid = self.processes[name].pid
        os.kill(pid, signal.SIGSTOP)
        return pid

    def thaw(self, name: str, pid: int) -> None:
        process = self.processes[name]
        if name in self.frozen and process.pid == pid:
            self.frozen.discard(name)
            if process.poll() is None:
                os.kill(pid, signal.SIGCONT)

    def thaw_all(self) -> None:
        for name in tuple(self.frozen):
            self.thaw(name, self.processes[name].pid)

    def leave(self, name: str) -> int | None:
        """Ask it to go."""
        if not self.alive(name) or name in self.frozen:
            return None
        self.processes[name].terminate()
        return self.processes[name].pid

    def fallen(self, among: Collection[str] | None = None) -> list[str]:
        """Those that have ended since they were looked at last, each told once. `among`: only of these."""
        found = []
        for name, process in list(self.processes.items()):
            code = process.poll() if among is None or name in among else None
            if code is not None:
                self._diary.note("exit", name=name, of=process.pid, code=code)
                del self.processes[name]
                self.frozen.discard(name)
                found.append(name)
        return found

    def end(self, *roles: str, within: float) -> list[str]:
        """Ask all of these roles to go; the names of those that had to be killed."""
        names = [name for name in self.names(*roles) if self.alive(name)]
        for name in names:
            self.leave(name)
        deadline, late = time.monotonic() + within, []
        for name in names:
            try:
                self.processes[name].wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                late.append(name)
                self.kill(name)
        self.fallen(names)  # others that have died meanwhile are for whoever starts them again
        return late

    def close(self) -> None:
        """End whatever is left."""
        for process in self._all:
            if process.poll() is None:
                process.kill()
            process.wait()
            if process.stdin is not None:
                process.stdin.close()
