"""Mistakes when starting a worker are answered with one line and the documented exit code."""

from __future__ import annotations

import json
import socket

import pytest
import redis

from groupmq.sync import Queue
from tests.cli.programs import Programs
from tests.support.workers import one_kind

pytestmark = one_kind


def said(programs: Programs, *words: str, code: int) -> str:
    """Start a worker that ends with this code. Returns the only line that it prints."""
    program = programs.start("worker", *words)
    assert program.ends() == code, program.log
    lines = program.log.splitlines()
    assert len(lines) == 1, program.log
    return lines[0]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("tasks", "'tasks' is not MODULE:HANDLER, such as app.tasks:handle"),
        ("tasks:", "'tasks:' is not MODULE:HANDLER"),
        ("nowhere.tasks:handle", "nowhere.tasks:handle: there is no module 'nowhere' (looked in"),
        ("tasks:nothing", "tasks:nothing: module 'tasks' has no 'nothing'"),
        ("tasks:number", "tasks:number is neither a handler (a callable) nor a Worker or Queue, but of type int"),
    ],
)
def test_a_wrong_module_path_is_bad_usage(programs: Programs, spec: str, words: str) -> None:
    assert words in said(programs, spec, "--queue", "orders", code=2)


def test_a_module_that_raises_is_reported_with_its_line(programs: Programs) -> None:
    programs.write("broken.py", "import json\nimport nosuchpackage\n")
    line = said(programs, "broken:handle", "--queue", "orders", code=1)
    assert "broken cannot be imported: ModuleNotFoundError: No module named 'nosuchpackage'" in line
    assert "broken.py, line 2" in line
    programs.write("script.py", "import sys\n\nsys.exit('no guard')\n")
    assert "SystemExit: no guard" in said(programs, "script:handle", "--queue", "orders", code=1)
    programs.write("typo.py", "def handle(job:\n")
    assert "typo.py, line 1" in said(programs, "typo:handle", "--queue", "orders", code=1)


def test_a_queue_must_be_named(programs: Programs) -> None:
    assert "which queue?" in said(programs, "tasks:handle", code=2)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-c", "0"], "concurrency: expected an integer from 1"),
        (["--job-timeout", "-1"], "is not a duration"),
        (["--name", ""], "name: expected a non-empty string"),
        (["--reload", "--burst"], "--reload and --burst exclude each other"),
        (["--redis-url", "http://x"], "redis: expected a URL"),
    ],
)
def test_a_wrong_option_is_bad_usage(programs: Programs, words: list[str], told: str) -> None:
    """The error is reported at once, even if the queue does not exist yet."""
    assert told in said(programs, "tasks:handle", "--queue", "orders", *words, code=2)


def test_an_unreachable_server_is_3(programs: Programs) -> None:
    line = said(programs, "tasks:handle", "--queue", "orders", "--redis-url", "redis://:secret@127.0.0.1:1", code=3)
    assert "127.0.0.1:1 cannot be reached" in line
    assert "secret" not in line


def test_an_unreachable_server_is_reported_once_for_all_processes(programs: Programs) -> None:
    words = ("tasks:handle", "--queue", "orders", "--redis-url", "redis://127.0.0.1:1", "--processes", "3")
    assert "cannot be reached" in said(programs, *words, code=3)


def test_a_read_only_server_is_3(programs: Programs, queue: Queue, client: redis.Redis) -> None:
    queue.pause()
    client.replicaof("127.0.0.1", 1)
    try:
        line = said(programs, "tasks:handle", "--queue", "orders", code=3)
    finally:
        client.replicaof("NO", "ONE")
    assert "is a read-only replica" in line


def test_a_password_that_is_wrong_is_3(programs: Programs, client: redis.Redis) -> None:
    client.config_set("requirepass", "secret")
    try:
        line = said(programs, "tasks:handle", "--queue", "orders", code=3)
    finally:
        client.config_set("requirepass", "")
    assert "credentials" in line


def test_settings_that_differ_are_refused(programs: Programs, url: str) -> None:
    with Queue("orders", url, group_concurrency=2) as queue:
        queue.add(1)
    line = said(programs, "tasks:handle", "--queue", "orders", "--group-concurrency", "3", code=2)
    assert "group_concurrency is 2 there and 3 here" in line
    line = said(programs, "tasks:handle", "--queue", "orders", "--exclusive", "--json", code=2)
    told = json.loads(line)
    assert "exclusive is False there and True here" in told["message"]
    assert "group_concurrency" not in told["message"]
    assert told["level"] == "error"


def test_a_configured_worker_takes_no_options(programs: Programs) -> None:
    programs.write(
        "app.py",
        "from groupmq import Queue, Worker\nasync def handle(job): ...\nworker = Worker(Queue('orders'), handle)\n",
    )
    line = said(programs, "app:worker", "-c", "4", "--queue", "other", code=2)
    assert "app:worker is a configured Worker: --concurrency, --queue must be given where it is made" in line


def test_a_port_that_is_taken_is_a_failed_start(programs: Programs, queue: Queue) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        words = ("tasks:handle", "--queue", "orders", "--bind", "127.0.0.1", "--health-port", port)
        assert f"cannot serve on 127.0.0.1:{port}: Address already in use" in said(programs, *words, code=1)
