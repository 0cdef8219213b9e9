"""The command as a program that a test starts in a separate folder, signals, kills, and whose output it reads."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
PATIENCE = 40.0
TASKS = '''
import asyncio, json, os, time

def note(kind, job):
    line = {"kind": kind, "job": job.id, "attempt": job.attempt, "pid": os.getpid()}
    with open("diary.jsonl", "a") as diary:
        diary.write(json.dumps(line) + "\\n")

def opened():
    return os.path.exists("gate")

async def handle(job):
    """Do what the data says; "wait" and "hang" until there is a file called gate."""
    note("start", job)
    if job.data == "die":
        os._exit(9)
    if job.data == "fail":
        raise ValueError("told to fail")
    if job.data == "hang":
        while not opened():
            time.sleep(0.01)
    while job.data == "wait" and not opened():
        await asyncio.sleep(0.01)
    note("end", job)

def plain(job):
    note("start", job)
    return os.getpid()

number = 3
'''


class Program:
    """One run of the command."""

    def __init__(self, folder: Path, words: tuple[str, ...], env: dict[str, str]) -> None:
        self.folder = folder
        self._log = folder / f"log-{len(list(folder.glob('log-*')))}.txt"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "groupmq.cli", *words],
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def log(self) -> str:
        return self._log.read_text()

    def says(self, pattern: str, timeout: float = PATIENCE) -> re.Match[str]:
        """Wait until the output matches. Returns the match."""
        self.until(lambda: re.search(pattern, self.log), f"the program prints {pattern!r}", timeout)
        found = re.search(pattern, self.log)
        assert found
        return found

    def until(self, predicate: Callable[[], object], description: str, timeout: float = PATIENCE) -> None:
        """Wait for a condition; if it does not come true, the failure shows the output of the program."""
        try:
            wait_until(predicate, description, timeout)
        except AssertionError as error:
            raise AssertionError(f"{error}; the program said:\n{self.log}") from None

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ends(self, timeout: float = PATIENCE) -> int:
        """Wait until the program ends. Returns its exit code."""
        self.until(lambda: self.process.poll() is not None, "the program ends", timeout)
        return self.process.wait()

    def port(self, page: str) -> int:
        return int(self.says(rf"serving .*{page}.* at http://127\.0\.0\.1:(\d+)")[1])

    def get(self, page: str) -> tuple[int, str]:
        """The status and text of a page that the program serves."""
        url = f"http://127.0.0.1:{self.port(page)}{page}"
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def close(self) -> None:
        """Kill the program and its children."""
        for child in children(self.pid):
            _kill(child)
        self.process.kill()
        self.process.wait()


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def children(pid: int) -> list[int]:
    """The process ids of the children of a process (Linux only)."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(path.parent.name))
    return sorted(found)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Programs:
    """The programs of one test, in one folder with tasks.py."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        (folder / "tasks.py").write_text(TASKS)
        self._started: list[Program] = []

    def start(self, *words: str, env: dict[str, str] | None = None) -> Program:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GROUPMQ", "REDIS_URL"))}
        environment = inherited | {"PYTHONPATH": str(ROOT / "src"), "GROUPMQ_URL": self.url} | (env or {})
        program = Program(self.folder, words, environment)
        self._started.append(program)
        return program

    def worker(self, *words: str, spec: str = "tasks:handle", queue: str = "orders", **more: Any) -> Program:
        return self.start("worker", spec, "--queue", queue, *words, **more)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def open_gate(self) -> None:
        (self.folder / "gate").touch()

    def diary(self, *kinds: str) -> list[dict[str, Any]]:
        path = self.folder / "diary.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        found = [json.loads(line) for line in lines]
        return [line for line in found if line["kind"] in kinds]

    def close(self) -> None:
        for program in self._started:
            program.close()


def in_folder(folder: Path, url: str) -> Iterator[Programs]:
    """The body of a fixture."""
    programs = Programs(folder, url)
    try:
        yield programs
    finally:
        programs.close()
