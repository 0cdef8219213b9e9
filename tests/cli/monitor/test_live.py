"""`groupmq monitor` on a real terminal: its pages and keys. At its end it restores the terminal."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from rich.cells import cell_len

from groupmq.sync import Queue
from tests.cli.monitor.screens import PATIENCE, Screen, needs_tmux
from tests.cli.operating import PROGRAM, Command
from tests.cli.programs import Programs, children, in_folder
from tests.support.servers import Server
from tests.support.waiting import wait_until
from tests.support.workers import one_kind

MONITOR = " ".join([*PROGRAM, "monitor", "--interval", "0.2"])


@pytest.fixture
def screen(tmp_path: Path, url: str) -> Iterator[Screen]:
    with Screen(tmp_path, Command(url).environment(COLUMNS="", LINES="", NO_COLOR="")) as screen:
        yield screen


@pytest.fixture
def programs(tmp_path: Path, url: str) -> Iterator[Programs]:
    yield from in_folder(tmp_path, url)


def monitor_of(screen: Screen) -> int:
    """The process id of the monitor on the screen."""
    (pid,) = children(int(screen.told("pane_pid")))
    return pid


@needs_tmux
@one_kind
def test_a_session_under_load(screen: Screen, programs: Programs, orders: Queue) -> None:
    orders.add("fail", job_id="broken", group_id="user:1", max_attempts=1)
    orders.add("wait", job_id="slow", group_id="user:2")
    orders.add_many([{"data": "wait", "group_id": "user:3"} for _ in range(5)])
    programs.worker("-c", "2", "--name", "shop-1")
    wait_until(lambda: orders.get_job_counts().active == 2, "the worker is busy", PATIENCE)
    screen.run(MONITOR)
    screen.shows(r"^  orders +running +redis://\S+ +\d\d:\d\d:\d\d UTC$")
    screen.shows(r"^  (\d+ +)?2 +4 +0 +1 +2 ")
    screen.shows(r"^  broken +1 +\S+ +failed +ValueError: told to fail")
    screen.shows(r"shop-1 +2/2 ")
    orders.add_many([{"data": "wait", "group_id": f"user:{n}"} for n in range(10, 30)])
    screen.shows(r"^  (\d+ +)?2 +24 +0 +1 +22 ")

    # Select a job and inspect it.
    screen.type("Down")
    screen.shows(r"^▸ slow +user:2 +1 +\S+ +shop-1")
    screen.type("Enter")
    screen.shows(r'^  data +"wait"$')
    assert "state     active" in screen.text
    screen.type("r")
    screen.shows("only failed jobs can be retried")
    screen.type("Escape")
    screen.shows("RECENT FAILURES")

    # Retry a failed job.
    screen.type("G")
    screen.shows(r"^▸ broken")
    screen.type("r")
    screen.shows(r"Retry job broken\? Its attempts start from 0 again\. y/n")
    screen.type("n")
    screen.shows("Enter inspect")
    assert len(programs.diary("start")) == 3
    programs.open_gate()
    screen.type("r", "y")
    screen.shows("job broken waits to run again")
    wait_until(lambda: [one["job"] for one in programs.diary("start")].count("broken") == 2, "it is retried", PATIENCE)

    # The load ends, and the screen shows that.
    screen.shows(r"^  (\d+ +)?0 +0 +0 +1 ")
    screen.shows(r"^  completed +\d")
    screen.type("q")
    assert screen.is_restored() == 0


@needs_tmux
@one_kind
def test_pausing_and_resuming_ask_first(screen: Screen, orders: Queue) -> None:
    orders.add(1)
    screen.run(MONITOR)
    screen.shows("p pause")
    screen.type("p")
    screen.shows(r"Pause orders\? Nothing new starts; running jobs go on\. y/n")
    assert not orders.is_paused()
    screen.type("x")
    screen.shows("p pause")
    screen.type("p", "y")
    screen.shows(r"^  orders +PAUSED")
    assert orders.is_paused()
    screen.shows("orders is paused")
    screen.type("p", "y")
    screen.shows(r"^  orders +running")
    assert not orders.is_paused()
    screen.type("?")
    screen.shows("move the selection")
    screen.type("q")
    screen.shows("ACTIVE JOBS")
    screen.type("q")
    assert screen.is_restored() == 0


@needs_tmux
@one_kind
def test_it_follows_the_size_of_the_window(screen: Screen, orders: Queue) -> None:
    orders.add_many([{"data": 1, "group_id": "漢字の長い名前" * 20 + str(n)} for n in range(20)])
    screen.run(MONITOR)
    screen.shows(r"oldest wait$")
    for width, height in ((120, 40), (50, 12), (200, 60), (80, 24)):
        screen.resize(width, height)
        wait_until(partial(drawn_for, screen, width, height), f"a frame of {width}x{height}", PATIENCE)
        rows = screen.rows
        assert all(cell_len(row) <= width for row in rows)
        assert [row for row in rows if row.startswith("  orders")] == rows[:1]
    screen.type("q")
    assert screen.is_restored() == 0


def drawn_for(screen: Screen, width: int, height: int) -> bool:
    """Whether a whole frame of that size is drawn: the time ends the first line, the keys are in the last one.

    The terminal may be read when only half of a frame has arrived. Narrow frames have no room for all keys.
    """
    rows = screen.rows
    whole = cell_len(rows[0]) == width - 1 and rows[0].endswith("UTC")
    return whole and (width < 80 or "q quit" in rows[height - 1])


@needs_tmux
@one_kind
@pytest.mark.parametrize("how", ["C-c", "TERM", "HUP", "q"])
def test_however_it_ends_the_terminal_is_restored(screen: Screen, orders: Queue, how: str) -> None:
    orders.add(1)
    screen.run(MONITOR)
    screen.shows("q quit")
    if how in ("TERM", "HUP"):
        os.kill(monitor_of(screen), signal.Signals[f"SIG{how}"])
    else:
        screen.type(how)
    assert screen.is_restored() == 0
    assert "RATES" not in screen.text


BROKEN = """
import itertools
from groupmq.cli.tree import run
from groupmq.cli.monitor import panels

calls, header = itertools.count(), panels.header

def broken(*given):
    if next(calls) > 5:
        raise RuntimeError("nobody expected this")
    return header(*given)

panels.header = broken
run()
"""


@needs_tmux
@one_kind
def test_an_error_that_nobody_expected_restores_the_terminal_too(screen: Screen, orders: Queue) -> None:
    orders.add(1)
    (screen.folder / "broken.py").write_text(BROKEN)
    screen.run(f"{sys.executable} broken.py monitor --interval 0.2")
    assert screen.is_restored() == 1
    screen.shows("RuntimeError: nobody expected this")


@needs_tmux
@one_kind
def test_it_can_be_suspended_and_goes_on(screen: Screen, orders: Queue) -> None:
    orders.add(1)
    screen.run(MONITOR)
    screen.shows("q quit")
    screen.type("C-z")
    screen.shows("Stopped")
    assert (screen.told("alternate_on"), screen.told("cursor_flag")) == ("0", "1")
    orders.add(2)
    screen.type("fg", "Enter")
    screen.shows(r"^  0 +2 ")
    assert screen.told("alternate_on") == "1"
    screen.type("q")
    wait_until(lambda: screen.told("alternate_on") == "0", "the monitor has ended", PATIENCE)


@needs_tmux
@one_kind
@pytest.mark.parametrize("no_color", ["", "1"])
def test_colours_only_if_they_are_welcome(tmp_path: Path, url: str, orders: Queue, no_color: str) -> None:
    orders.add(1, job_id="bad")
    orders.fail("bad", "told to")
    with Screen(tmp_path, Command(url).environment(COLUMNS="", LINES="", NO_COLOR=no_color)) as screen:
        screen.run(MONITOR)
        screen.shows("told to")
        screen.type("Down")
        screen.shows("^▸ bad ")
        styled = screen.tmux("capture-pane", "-p", "-e")
        assert ("\x1b[" in styled) == (no_color == "")
        screen.type("q")
        assert screen.is_restored() == 0


@needs_tmux
def test_a_lost_server_is_shown_and_found_when_it_comes_back(tmp_path: Path) -> None:
    server = Server.start("valkey", aof=True)
    try:
        with Queue("orders", server.url) as queue, Screen(tmp_path, Command(server.url).environment()) as screen:
            queue.add(1)
            screen.run(MONITOR)
            screen.shows(r"^  0 +1 ")
            server.kill()
            screen.shows(r"^  cannot reach redis://\S+, trying again$")
            screen.type("p", "y")
            screen.shows("cannot reach")
            server.restart()
            screen.shows(r"^  0 +1 ")
            wait_until(lambda: "cannot reach" not in screen.text, "the trouble is no longer shown", PATIENCE)
            queue.obliterate()
            screen.shows("queue 'orders' does not exist at .*; looking again")
            queue.add(1)
            queue.add(2)
            screen.shows(r"^  0 +2 ")
            screen.type("q")
            assert screen.is_restored() == 0
    finally:
        server.stop()
