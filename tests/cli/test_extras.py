"""`groupmq server`, `demo` and `bench`."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from groupmq.cli import extras
from groupmq.sync import Queue
from tests.cli.operating import PROGRAM, Command

NOWHERE = Command("redis://127.0.0.1:1", queue="")


class Running:
    """A run of `groupmq server` in the foreground."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [*PROGRAM, "server", *words],
            env=NOWHERE.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline().strip()

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(number)
        err = self.process.communicate(timeout=30)[1]
        return self.process.returncode, err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_server_prints_its_url_and_ends_with_a_signal(number: int) -> None:
    running = Running()
    with Queue("orders", running.said) as queue:
        queue.add(1)
    code, err = running.end(number)
    assert code == 0, err
    assert f"export GROUPMQ_URL={running.said}" in err
    assert not Path(running.said.removeprefix("unix://")).exists()


def test_the_server_keeps_its_data_and_listens_on_a_port(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    first = Running("--dir", str(tmp_path), "--port", port, "--json")
    told = json.loads(first.said)
    assert told["url"] == f"redis://127.0.0.1:{port}"
    assert told["dir"] == str(tmp_path)
    with Queue("orders", told["url"]) as queue:
        queue.add(1, job_id="kept")
    assert first.end()[0] == 0
    second = Running("--dir", str(tmp_path))
    with Queue("orders", second.said) as queue:
        assert queue.require_job("kept").state == "waiting"
    assert second.end()[0] == 0


def test_a_port_that_is_taken_is_an_error_of_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        answer = NOWHERE.program("server", "--port", str(taken.getsockname()[1]))
    assert answer.line(1).startswith("cannot listen on port")


def test_a_server_that_dies_is_reported() -> None:
    running = Running("--json")
    os.kill(json.loads(running.said)["pid"], signal.SIGKILL)
    assert "has ended unexpectedly" in running.process.communicate(timeout=30)[1]
    assert running.process.returncode == 3


def test_the_demo_proves_itself_in_json() -> None:
    answer = NOWHERE.program("demo", "--json")
    assert answer.code == 0, answer.err
    assert answer.json["holds"] is True
    assert answer.json["jobs"] == 600
    assert "Proved" in answer.err


def test_the_benchmark_runs_from_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "smoke run" in NOWHERE.program("bench", "--help").out
    assert extras.checkout(tmp_path / "lib" / "groupmq" / "__init__.py") is None
    monkeypatch.setattr(extras, "checkout", lambda: None)
    assert "source checkout only" in NOWHERE("bench", "--quick").line(2)
