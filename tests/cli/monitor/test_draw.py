"""Frames: golden ones, and none that is larger than the screen."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.cells import cell_len

from groupmq import HeldGroup, Job
from groupmq.cli.monitor import panels
from groupmq.cli.monitor.draw import PanelRows, Size, frame, shares, sheet, within
from groupmq.cli.monitor.keyboard import KeyAction
from groupmq.cli.monitor.state import MonitorRow, Question, State, Switch, press, seen
from groupmq.cli.monitor.text import PLAIN, RICH, Glyphs, fit, glyphs_for, number, per_second, span, sparkline
from groupmq.core.drafts import draft
from groupmq.core.queue_options import QueueOptions
from groupmq.core.record import Record
from tests.cli.monitor.samples import AT, EMPTY, HOSTILE, blocked, hostile_look, look, opened, run, state
from tests.cli.operating import golden

SIZES = [Size(80, 24), Size(120, 40), Size(200, 60), Size(64, 20), Size(63, 24), Size(40, 10), Size(10, 5), Size(1, 1)]


def text(before: State, size: Size = SIZES[0], glyphs: Glyphs = RICH) -> str:
    return "\n".join(row.plain.rstrip() for row in frame(before, size, glyphs)) + "\n"


def checked(before: State, size: Size, glyphs: Glyphs = RICH) -> list[str]:
    """The rows of the frame. Checks that it has the size of the screen and contains no control characters."""
    rows = [row.plain for row in frame(before, size, glyphs)]
    assert [cell_len(row) for row in rows] == [size.width] * size.height
    assert all(row.isprintable() for row in rows)
    return rows


def a_job(data: object, **facts: object) -> Job:
    options = QueueOptions(name="orders")
    made = draft(options, data, job_id="bad-1", group_id="user:42")
    stored = Record(0, 0, 1, 1_772_632_000_000, 5, False, "user:42", {}, made.data)
    job = Job(None, options.serializer, "bad-1", "failed", stored, 5)
    for name, value in facts.items():
        setattr(job, name, value)
    return job


def inspected(job: Job) -> State:
    return replace(state(), page="job", job_id="bad-1", job=job)


@pytest.mark.parametrize("size", SIZES[:2], ids=["80x24", "120x40"])
def test_a_frame_is_the_golden_one(size: Size) -> None:
    golden(f"monitor-{size.width}x{size.height}.txt", text(state(selected=MonitorRow("run", "job-2")), size))


def test_the_other_pages_are_the_golden_ones() -> None:
    golden("monitor-help.txt", text(state(page="help")))
    stack = 'Traceback:\n  File "shop.py", line 3\nKeyError: 42'
    job = a_job({"amount": 999, "note": "x" * 80}, failed_reason="KeyError: 42", stacktrace=stack, attempts_made=3)
    golden("monitor-job.txt", text(inspected(job)))
    golden("monitor-empty.txt", text(seen(State("orders", "redis://shop.example:6379"), EMPTY)))
    golden("monitor-ascii.txt", text(state(selected=MonitorRow("failure", "bad-2")), glyphs=PLAIN))


def test_blocked_groups_are_shown_before_all_that_moves_and_take_no_room_when_there_are_none() -> None:
    many = tuple(blocked(f"user:{n}", f"charge-{n}", 60 * n, n) for n in range(9, 0, -1))
    stuck = seen(state(), look(30, groups_blocked=12, blocked=many))
    golden("monitor-blocked.txt", text(stuck, Size(120, 40)))
    rows = checked(stuck, Size(80, 24))
    (heading,) = [n for n, row in enumerate(rows) if "BLOCKED GROUPS (12)" in row]
    assert rows[heading + 1].split() == ["user:9", "charge-9", "9h00m", "9"]
    assert any("RECENT FAILURES" in row for row in rows), "the last list has no room on the screen"
    assert "BLOCKED" not in text(state(), Size(120, 40))


def test_open_breakers_are_shown_below_the_blocked_groups() -> None:
    many = tuple(opened(f"shop:{n}", 3 * n, 60 * n, n) for n in range(9, 0, -1))
    broken = seen(state(), look(30, groups_blocked=1, blocked=(blocked(),), breakers_open=11, breakers=many))
    golden("monitor-breakers.txt", text(broken, Size(120, 40)))
    rows = checked(broken, Size(80, 24))
    (heading,) = [n for n, row in enumerate(rows) if "OPEN BREAKERS (11)" in row]
    assert rows[heading + 1].split() == ["shop:9", "27", "9h00m", "30s", "9"]
    assert any("RECENT FAILURES" in row for row in rows), "the last list has no room on the screen"


def test_a_sheet_is_as_long_as_it_needs_to_be() -> None:
    rows = [row.plain.rstrip() for row in sheet(state(), 80, RICH)]
    golden("monitor-sheet.txt", "\n".join(rows) + "\n")
    assert "quit" not in rows[-1]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("glyphs", [RICH, PLAIN], ids=["rich", "plain"])
def test_no_frame_is_larger_than_the_screen(size: Size, glyphs: Glyphs) -> None:
    for look_ in (look(), EMPTY, hostile_look()):
        for name in HOSTILE:
            seen_ = seen(State(name or "q", f"redis://{name}:6379"), look_)
            rows = seen_.rows
            checked(seen_, size, glyphs)
            checked(replace(seen_, selected=rows[-1] if rows else None, message=name), size, glyphs)
    checked(State("orders", "somewhere", trouble="cannot reach it " * 20), size, glyphs)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_no_page_of_a_job_is_larger_than_the_screen(size: Size, name: str) -> None:
    safe = name.encode("utf-8", "replace").decode()
    job = a_job({"text": [safe] * 20}, failed_reason=name, stacktrace=f"{name}\n" * 50, worker=name, progress=safe)
    checked(inspected(job), size)
    checked(replace(inspected(job), scroll=10), size)
    checked(replace(inspected(job), job=None, job_id=name), size)


def test_data_without_end_is_cut() -> None:
    job = a_job("y" * 1_000_000)
    rows = [row.plain for row in frame(inspected(job), Size(80, 300), RICH)]
    assert any("more characters; groupmq job status shows all" in row for row in rows)


def test_a_page_scrolls_to_its_end_and_no_further() -> None:
    job = a_job({f"key-{n}": n for n in range(40)})
    size = SIZES[0]
    far = within(press(inspected(job), KeyAction.LAST)[0], size, RICH)
    assert 0 < far.scroll < 60
    rows = checked(far, size)
    assert "}" in rows[21]
    assert within(press(far, KeyAction.UP)[0], size, RICH).scroll == far.scroll - 1


def test_a_selection_far_down_is_in_view() -> None:
    many = seen(state(), look(40, runs=tuple(run(f"job-{n}") for n in range(50))))
    rows = checked(replace(many, selected=MonitorRow("run", "job-37")), SIZES[0])
    assert [row for row in rows if row.startswith("▸ job-37 ")]


def test_a_question_is_read_even_where_there_is_no_room() -> None:
    question = Question("Retry job " + "x" * 200 + "? Its attempts start from 0 again.", Switch(paused=True))
    rows = checked(state(question=question), SIZES[0])
    assert rows[-2].rstrip().endswith("y/n")


def test_what_is_said_gives_way_to_trouble_and_trouble_to_a_question() -> None:
    said = state(message="it is done")
    assert "it is done" in checked(said, SIZES[0])[-2]
    troubled = replace(said, trouble="cannot reach redis://shop, trying again")
    assert "cannot reach redis://shop, trying again" in checked(troubled, SIZES[0])[-2]
    asked = replace(troubled, question=Question("Pause orders?", Switch(paused=True)))
    assert "Pause orders? y/n" in checked(asked, SIZES[0])[-2]


def test_nothing_moves_while_jobs_come_and_go() -> None:
    def headings(before: State) -> list[int]:
        rows = checked(before, SIZES[0])
        return [i for i, row in enumerate(rows) if row.strip().startswith(("RATES", "BUSIEST", "ACTIVE", "RECENT"))]

    assert headings(state()) == headings(seen(State("orders", "somewhere"), EMPTY))


@pytest.mark.parametrize("height", range(60))
def test_every_row_is_given_to_a_list(height: int) -> None:
    for airy in (False, True):
        share = shares(height, airy=airy)
        assert min(share) >= 0
        assert sum(share) == max(0, height - (16 if airy else 11))
    assert shares(22, airy=False) == PanelRows(4, 4, 3)


@pytest.mark.parametrize(
    ("value", "said"),
    [(0, "0"), (999_999, "999,999"), (1_000_000, "1M"), (1_234_567, "1.23M"), (999_999_999, "1G"), (2**63, "9.22E")],
)
def test_a_number_takes_seven_letters_at_most(value: int, said: str) -> None:
    assert number(value) == said


def test_times_and_rates_are_short() -> None:
    times = [None, 0.0, 9.94, 9.96, 59.4, 59.6, 3599, 3600, 86_399, 86_400, 100 * 86_400]
    said = ["-", "0.0s", "9.9s", "10s", "59s", "1m00s", "59m59s", "1h00m", "23h59m", "1d00h", "100d"]
    assert [span(one) for one in times] == said
    assert [per_second(one) for one in (None, 0.04, 999.94, 1000.0, 2e6)] == ["-", "0.0", "999.9", "1,000", "2M"]


def test_a_sparkline_shows_the_newest_and_distinguishes_little_from_nothing() -> None:
    assert sparkline([0, 1, 50, 100], 4, 100, RICH) == "▁▂▅█"
    assert sparkline([5, 0, 1], 2, 1, RICH) == "▁█"
    assert sparkline([1], 3, 1, PLAIN) == "  #"
    assert sparkline([], 3, 0, RICH) == "   "
    assert sparkline([1], 0, 1, RICH) == ""


@pytest.mark.parametrize(
    ("encoding", "glyphs"), [("utf-8", RICH), ("latin-1", PLAIN), (None, PLAIN), ("no such", PLAIN)]
)
def test_a_terminal_gets_letters_that_it_knows(encoding: str | None, glyphs: Glyphs) -> None:
    assert glyphs_for(encoding) == glyphs


@pytest.mark.parametrize(("width", "shown"), [(30, "tenant:eu:customer:42"), (15, "tenant:…omer:42"), (6, "tenan…")])
def test_names_are_cut_in_the_middle_since_they_differ_at_their_end(width: int, shown: str) -> None:
    assert fit("tenant:eu:customer:42", width, RICH, name=True).rstrip() == shown
    assert cell_len(fit("日本語の長い名前です", 9, RICH, name=True)) == 9


def test_workers_are_shown_with_host_and_pid_where_there_is_room() -> None:
    one = look().workers[0]
    assert f"{one.host} {one.pid}" in panels.workers(look(), 80, 5, RICH)[1].plain
    assert "HOST" not in panels.workers(look(), 40, 5, RICH)[0].plain


def test_of_the_group_that_is_held_longest_the_reason_is_shown() -> None:
    first = look().longest_waiting[0]
    assert first.id is not None
    held = HeldGroup(first.id, "backoff", None, None, AT, None, 1, 5.0)
    shown = panels.longest_waiting(look(longest_held=held), 60, 5, RICH)
    assert shown[0].plain.rstrip().endswith("HELD BY")
    assert shown[1].plain.rstrip().endswith("backoff")


def test_the_longest_held_group_is_one_that_nobody_has_paused_if_there_is_one() -> None:
    paused = HeldGroup("vacation", "paused", None, None, AT, None, 1, 7200.0)
    held = HeldGroup("user:42", "running", "job-1", 1, AT, None, 1, 60.0)
    both = panels.counts(look(longest_held=paused, longest_held_unpaused=held), 120, RICH)[1].plain
    assert span(60.0) in both
    assert span(7200.0) not in both
    assert span(7200.0) in panels.counts(look(longest_held=paused), 120, RICH)[1].plain
