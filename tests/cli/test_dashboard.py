"""`groupmq dashboard` and `groupmq demo --dashboard`: served, protected, and ended."""

from __future__ import annotations

import signal
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from groupmq.dashboard.security import passwords
from groupmq.sync import Queue
from tests.cli.operating import Command
from tests.cli.programs import Program, Programs
from tests.support.workers import one_kind

NOWHERE = Command("redis://127.0.0.1:1", queue="")
TOKEN = "a-token-of-some-length"


def get(program: Program, path: str, **headers: str) -> tuple[int, str]:
    at = program.says(r"http://localhost:\d+/")[0].rstrip("/").replace("localhost", "127.0.0.1")
    request = urllib.request.Request(at + path, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@one_kind
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_its_address_serves_and_ends(programs: Programs, queue: Queue, number: signal.Signals) -> None:
    queue.add({"n": 1}, group_id="user:42")
    program = programs.start("dashboard", "--port", "0")
    assert get(program, "/")[0] == 200
    assert "user:42" in get(program, "/queues/orders/lanes")[1]
    program.signal(number)
    assert program.ends() in (0, -number, 128 + number)
    assert "Traceback" not in program.log


@one_kind
def test_it_gives_its_address_in_json(programs: Programs, queue: Queue) -> None:
    queue.add(1)
    program = programs.start("dashboard", "--port", "0", "--json", "--namespace", "orders")
    program.says(r'\{"url": "http://localhost:\d+/"\}')
    assert get(program, "/queues/orders")[0] == 200


@one_kind
def test_it_can_be_read_only_and_know_one_queue(programs: Programs, queue: Queue) -> None:
    queue.add({"n": 1})
    program = programs.start("dashboard", "--port", "0", "--read-only", "-q", "orders")
    assert get(program, "/queues/orders")[0] == 200
    assert get(program, "/queues/other")[0] == 404
    assert get(program, "/queues/orders/actions/pause")[0] == 403


@one_kind
def test_a_token_from_the_environment(programs: Programs, queue: Queue) -> None:
    queue.add({"n": 1})
    env = {"GROUPMQ_DASHBOARD_TOKEN": TOKEN}
    program = programs.start("dashboard", "--port", "0", "--auth", "token", env=env)
    assert get(program, "/api/v1/queues")[0] == 401
    assert get(program, "/api/v1/queues", Authorization=f"Bearer {TOKEN}")[0] == 200
    assert TOKEN not in program.log


def test_a_secret_comes_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_text("too-short\n")
    from_file = NOWHERE("dashboard", "--port", "0", "--secret-file", str(tmp_path / "secret"))
    monkeypatch.setenv("GROUPMQ_DASHBOARD_SECRET", "too-short")
    from_environment = NOWHERE("dashboard", "--port", "0")
    for answer in (from_file, from_environment):
        told = answer.line(2)
        assert "secret: expected a text of at least 32 characters" in told
        assert "too-short" not in told


@one_kind
def test_names_and_passwords_from_a_file(programs: Programs, queue: Queue, tmp_path: Path) -> None:
    queue.add({"n": 1})
    (tmp_path / "users").write_text(f"# who may\n\nada:{passwords.hash_password('x')}\n")
    program = programs.start("dashboard", "--port", "0", "--auth", f"basic:{tmp_path / 'users'}")
    assert get(program, "/")[0] == 401
    assert get(program, "/", Authorization="Basic YWRhOng=")[0] == 200


@one_kind
def test_it_starts_while_the_server_is_away(programs: Programs) -> None:
    program = programs.start("dashboard", "--port", "0", "--redis-url", "redis://127.0.0.1:1")
    code, text = get(program, "/")
    assert code == 503
    assert "does not answer" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--host", "0.0.0.0"), "would let anyone in: give --auth"),
        (("--auth", "magic"), "expected token, token:FILE, basic:FILE or none"),
        (("--auth", "token"), "GROUPMQ_DASHBOARD_TOKEN is empty"),
        (("--auth", "token:missing"), "No such file"),
        (("--auth", "basic:missing"), "No such file"),
        (("--redis-url", "nonsense"), "expected a URL"),
    ],
)
def test_a_mistake_is_one_line(words: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GROUPMQ_DASHBOARD_TOKEN", raising=False)
    answer = NOWHERE("dashboard", "--port", "0", *words)
    assert answer.code in (1, 2)
    assert said in answer.err
    assert answer.err.count("\n") == 1


def test_plain_passwords_and_short_tokens_are_refused(tmp_path: Path) -> None:
    (tmp_path / "users").write_text("ada:hunter2\n")
    (tmp_path / "token").write_text("short\n")
    (tmp_path / "bad").write_text("nothing\n")
    for how, said in (("basic:users", "hashed"), ("token:token", "at least 16"), ("basic:bad", "line 1")):
        kind, _, name = how.partition(":")
        answer = NOWHERE("dashboard", "--port", "0", "--auth", f"{kind}:{tmp_path / name}")
        assert answer.code == 2
        assert said in answer.err
        assert "hunter2" not in answer.err


@one_kind
def test_the_demo_is_alive_in_the_browser(programs: Programs) -> None:
    program = programs.start("demo", "--dashboard", "--port", "0")
    program.until(lambda: "user:13" in get(program, "/queues/orders/lanes")[1], "the page of lanes is served")
    for path in ("/", "/queues/orders", "/queues/orders/repeats", "/queues/emails/workers"):
        assert get(program, path)[0] == 200
    program.signal(signal.SIGINT)
    program.ends()
    assert "Traceback" not in program.log
