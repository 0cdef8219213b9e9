"""`groupmq monitor` without a screen: one frame, frames in a pipe, JSON, and mistakes."""

from __future__ import annotations

import json
import re
import signal

import pytest

from groupmq.sync import Queue
from tests.cli.monitor.streams import QUICK, Stream
from tests.cli.operating import Command
from tests.support.workers import one_kind

pytestmark = one_kind


def test_once_prints_one_frame(command: Command, stocked: Queue) -> None:
    answer = command("monitor", "--once", *QUICK, COLUMNS="80")
    assert (answer.code, answer.err) == (0, "")
    rows = answer.out.splitlines()
    assert max(map(len, rows)) <= 80
    assert re.match(r"  orders +running +redis://\S+ +\d\d:\d\d:\d\d UTC$", rows[0])
    assert re.match(r"  0 +3 +1 +2 +2 +- ", rows[3])
    assert re.search(r"  completed +0\.0 +▁ +1\s", answer.out)
    assert re.search(r"  user:1 +2 +0 +user:1 +\S+ +ready\n", answer.out)
    assert re.search(r"  bad-2 +0 +\S+ +failed +no such customer\n", answer.out)
    assert "nothing runs" in answer.out
    assert "\x1b" not in answer.out


def test_once_in_a_pipe_has_no_escape_codes(command: Command, stocked: Queue) -> None:
    answer = command.program("monitor", "orders", "--once", *QUICK, TERM="xterm-256color")
    assert (answer.code, answer.err) == (0, "")
    assert "bad-1" in answer.out
    assert all(row.isprintable() for row in answer.out.splitlines())


def test_once_as_json_prints_the_state(command: Command, stocked: Queue) -> None:
    found = command("monitor", "--once", "--json", *QUICK).json
    counts = stocked.get_job_counts()
    assert found["counts"] == {name: getattr(counts, name) for name in counts.__dataclass_fields__}
    assert list(found) == [
        *("queue", "at", "paused", "counts", "rates", "oldest_wait", "longest_held", "longest_held_unpaused"),
        *("last_hour", "groups_blocked", "breakers_open", "groups", "active", "workers", "failures"),
    ]
    assert found["rates"] == {"added": 0.0, "completed": 0.0, "failed": 0.0, "retried": 0.0, "processed": 0.0}
    assert found["last_hour"] == {"completed": 1, "failed": 2, "retried": 0, "processed": 1}
    assert [group["id"] for group in found["groups"]["busiest"]] == ["user:1", "user:2"]
    assert [(one["id"], one["state"]) for one in found["failures"]] == [("bad-2", "failed"), ("bad-1", "failed")]


def test_ids_cannot_drive_what_reads_the_frame(command: Command, orders: Queue) -> None:
    orders.add(1, group_id="\x1b[31mred\x07 [bold]", job_id="a\nb")
    orders.fail("a\nb", "\x1b[2J")
    orders.add(1, group_id="漢字" * 100)
    out = command("monitor", "--once", *QUICK, COLUMNS="120").out
    assert "\x1b" not in out
    assert "a\\nb" in out
    assert "\\x1b[2J" in out


def test_a_terminal_that_lacks_letters_gets_plain_ones(command: Command, stocked: Queue) -> None:
    answer = command.program("monitor", "--once", *QUICK, PYTHONIOENCODING="latin-1")
    assert answer.out.isascii()
    assert "\\u" not in answer.out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_in_a_pipe_frames_follow_each_other_until_a_signal(
    command: Command, orders: Queue, streams: list[Stream], number: signal.Signals
) -> None:
    orders.add_many([{"data": n} for n in range(3)])
    streams.append(stream := Stream(command))
    stream.until(r"^  (\d+ +)?0 +3 ")
    orders.add_many([{"data": n} for n in range(4)])
    stream.until(r"^  (\d+ +)?0 +7 ")
    assert stream.end(number) == (0, "")


def test_in_a_pipe_json_is_a_line_for_each_look(command: Command, orders: Queue, streams: list[Stream]) -> None:
    orders.add(1)
    streams.append(stream := Stream(command, "--json"))
    assert json.loads(stream.until(""))["counts"]["waiting"] == 1
    orders.add(2)
    assert json.loads(stream.until('"waiting": 2'))["queue"] == "orders"


def test_a_reader_that_goes_is_no_error(command: Command, orders: Queue, streams: list[Stream]) -> None:
    orders.add(1)
    streams.append(stream := Stream(command))
    stream.until("orders")
    assert stream.process.stdout is not None
    stream.process.stdout.close()
    assert stream.process.stderr is not None
    assert stream.process.stderr.read() == ""
    stream.process.stderr.close()
    assert stream.process.wait(30) == 0


@pytest.mark.parametrize("once", [["--once"], []])
def test_a_queue_that_does_not_exist_is_refused(command: Command, url: str, once: list[str]) -> None:
    said = command("monitor", "oders", *once).line(1)
    assert said.startswith("queue 'oders' does not exist at redis://")
