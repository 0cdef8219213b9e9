"""On a terminal there are colours, questions and progress bars; in a pipe there are none."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
from collections.abc import Callable

import pytest

from groupmq.cli.output.tables import span, words
from groupmq.sync import Queue
from tests.cli.operating import PROGRAM, Command
from tests.support.workers import one_kind

ESCAPE = "\x1b["


def on_terminal(command: Command, *words: str, typed: str = "", **env: str) -> tuple[int, str]:
    """Run the command on a terminal. Returns its output on stdout and stderr."""
    ours, theirs = pty.openpty()
    env = command.environment(**{"TERM": "xterm-256color", "NO_COLOR": ""} | env)
    process = subprocess.Popen([*PROGRAM, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    os.write(ours, typed.encode())
    printed = b""
    with contextlib.suppress(OSError):  # Linux reports the end of a terminal in this way
        while more := os.read(ours, 65536):
            printed += more
    os.close(ours)
    return process.wait(30), printed.decode()


@one_kind
def test_colours_on_a_terminal_only_and_not_with_no_color(command: Command, stocked: Queue) -> None:
    assert ESCAPE in on_terminal(command, "job", "list")[1]
    assert ESCAPE not in on_terminal(command, "job", "list", NO_COLOR="1")[1]
    assert ESCAPE not in command.program("job", "list").out


@one_kind
def test_json_has_no_colours_even_on_a_terminal(command: Command, stocked: Queue) -> None:
    assert ESCAPE not in on_terminal(command, "job", "list", "--json")[1]


@one_kind
@pytest.mark.parametrize(("typed", "code", "left"), [("n\n", 1, 4), ("\n", 1, 4), ("y\n", 0, 0)])
def test_purge_asks_on_a_terminal(command: Command, stocked: Queue, typed: str, code: int, left: int) -> None:
    ended, printed = on_terminal(command, "queue", "purge", typed=typed)
    assert "This removes 4 jobs of orders (3 waiting, 1 delayed). Go on? [y/N]" in printed.replace("\r\n", " ")
    assert ended == code, printed
    assert ("nothing was removed" in printed) == (code == 1)
    assert stocked.get_job_counts().total == left


@one_kind
def test_a_long_operation_shows_a_bar_on_a_terminal(command: Command, stocked: Queue) -> None:
    assert "removing" in on_terminal(command, "queue", "purge", "--yes")[1]
    assert "removing" not in command.program("queue", "purge", "--yes").err


@one_kind
def test_a_reader_that_goes_is_no_error(command: Command, orders: Queue) -> None:
    orders.add_many([{"data": "x" * 1000} for _ in range(2000)])
    process = subprocess.Popen(
        [*PROGRAM, "job", "export"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=command.environment()
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(30) == 0


@one_kind
def test_ids_cannot_drive_the_terminal(command: Command, orders: Queue) -> None:
    orders.add("\x1b[2J", group_id="\x1b[31mred\x07 [bold]", job_id="a\nb")
    for verb in (["job", "list"], ["job", "status", "a\nb"], ["queue", "groups"]):
        out = command(*verb).out
        assert "\x1b" not in out
        assert "\\x1b[31mred\\x07 [bold]" in out


@one_kind
def test_a_terminal_that_lacks_a_letter_gets_its_escape(command: Command, orders: Queue) -> None:
    orders.add(1, group_id="to \u2192", job_id="a")
    answer = command.program("job", "list", PYTHONIOENCODING="latin-1")
    assert answer.code == 0
    assert "to \\u2192" in answer.out


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: span(0.0123), "12 ms"),
        (lambda: span(59.4), "59 s"),
        (lambda: span(60), "1 min"),
        (lambda: span(3725), "1 h 2 min"),
        (lambda: span(90_000), "1 d 1 h"),
        (lambda: words("x" * 10, 8), "xxxxx..."),
        (lambda: words(None), "-"),
    ],
)
def test_words(call: Callable[[], str], said: str) -> None:
    assert call() == said
