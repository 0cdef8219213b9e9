"""The log lines of a worker while its server is unreachable: pure decisions, with a clock that tests move."""

from __future__ import annotations

from typing import Any

import pytest

from groupmq.client.duties.retention import AgeRetention
from groupmq.client.outage import OutageLog, spent
from groupmq.core.errors import ConnectionLost, ScriptError, ServerRefused
from groupmq.worker.outage import RENEW, TAKE
from tests.support.hostile import Unprintable

GONE = ConnectionLost("the server at here cannot be reached: refused")


class Log:
    def __init__(self) -> None:
        self.lines: list[str] = []

        self.levels: set[str] = set()

    def __getattr__(self, level: str) -> Any:
        def line(msg: str, *args: Any) -> None:
            self.levels.add(level)
            self.lines.append(msg % args)

        return line


class Watch:
    """An OutageLog whose clock stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.logger = Log()
        self.log = OutageLog(
            "worker w of queue orders", "it tries again, with pauses", "jobs go on", self.logger, lambda: self.now
        )

    @property
    def lines(self) -> list[str]:
        lines, self.logger.lines = self.logger.lines, []
        return lines

    def fail(self, task: str = TAKE, error: BaseException = GONE, after: float = 0.0, part: str = "") -> None:
        self.now += after
        self.log.failed(task, error, part)

    def answer(self, task: str = TAKE, after: float = 0.0, part: str = "") -> None:
        """Record an answer to a call that took no time."""
        self.now += after
        self.log.answered(task, self.now, part)


@pytest.fixture
def watch() -> Watch:
    return Watch()


def test_a_loss_is_one_warning_that_says_what_since_when_and_what_happens_next(watch: Watch) -> None:
    watch.answer()
    watch.fail(after=2)
    watch.fail(after=0.5)
    for task in (RENEW, AgeRetention.task, TAKE, RENEW):
        watch.fail(task, after=1)
    assert watch.lines == [
        "worker w of queue orders cannot take jobs: the server at here cannot be reached: refused. The last answer of "
        "the server came 2.5 s ago; it tries again, with pauses, and jobs go on"
    ]


def test_a_server_that_has_never_answered_is_not_said_to_have_answered(watch: Watch) -> None:
    watch.fail(after=2)
    watch.fail(after=0.5)
    assert watch.lines == [
        "worker w of queue orders cannot take jobs: the server at here cannot be reached: refused. The server has not "
        "answered yet; it tries again, with pauses"
    ]
    watch.answer(after=1)
    assert watch.lines == ["worker w of queue orders reaches its server again, after 3.5 s and 2 failed tries"]


def test_a_server_that_refuses_every_call_is_not_said_to_be_silent(watch: Watch) -> None:
    watch.fail(error=ServerRefused("NOPERM", "denied"))
    assert "denied. The server has accepted no call yet; it tries again" in watch.lines[0]


def test_the_return_is_one_line_that_says_how_long_it_took(watch: Watch) -> None:
    watch.fail()
    watch.fail(RENEW, after=10)
    watch.lines.clear()
    watch.answer(RENEW, after=5)
    watch.answer(TAKE, after=1)
    watch.answer(RENEW, after=1)
    assert watch.lines[-1:] == ["worker w of queue orders reaches its server again, after 15.0 s and 2 failed tries"]


def test_while_the_server_stays_away_summaries_become_rarer(watch: Watch) -> None:
    watch.fail()
    watch.fail()
    assert len(watch.lines) == 1
    told: list[int] = []
    for second in range(1, 3600):
        watch.fail(RENEW if second % 2 else TAKE, after=1)
        if watch.lines:
            told.append(second)
    assert told == [10, 30, 70, 150, 310, 630, 1230, 1830, 2430, 3030]


def test_a_summary_counts_the_tries_of_all_parts(watch: Watch) -> None:
    watch.fail()
    watch.fail()
    for _ in range(20):
        watch.fail(RENEW, after=0.5)
    assert watch.lines[1:] == [
        "worker w of queue orders still cannot take jobs, after 10.0 s and 22 tries: the server at here cannot be "
        "reached: refused. It keeps trying"
    ]


def test_an_answer_to_a_call_from_before_the_loss_does_not_end_it(watch: Watch) -> None:
    began = watch.now
    watch.fail(RENEW, after=1)
    watch.fail(RENEW)
    watch.log.answered(TAKE, began)
    watch.fail(RENEW, after=1)
    assert len(watch.lines) == 1


def test_a_second_loss_is_logged_again(watch: Watch) -> None:
    for _ in range(2):
        watch.fail(after=5)
        watch.fail(after=1)
        watch.answer(after=5)
    assert ["cannot take" in line for line in watch.lines] == [True, False, True, False]


def test_a_refused_call_concerns_its_own_part_alone(watch: Watch) -> None:
    refused = ServerRefused("NOPERM", "denied")
    watch.fail(RENEW, refused)
    for _ in range(9):
        watch.answer(TAKE, after=1)
        watch.fail(RENEW, refused)
    assert ["renew its leases: denied" in line for line in watch.lines] == [True]
    watch.fail(TAKE, GONE)
    watch.fail(TAKE, GONE)
    watch.answer(TAKE, after=1)
    assert [line.split(", ")[0] for line in watch.lines][1:] == ["worker w of queue orders reaches its server again"]
    watch.answer(RENEW, after=1)
    assert watch.lines == ["worker w of queue orders can renew its leases again, after 11.0 s and 10 failed tries"]


def test_a_connection_that_is_replaced_at_once_is_no_outage(watch: Watch) -> None:
    for _ in range(3):
        watch.fail(TAKE, after=1)
        watch.answer(TAKE)
    assert watch.lines == 3 * [
        "worker w of queue orders has replaced a connection that was lost: the server at here cannot be reached: "
        "refused"
    ]
    assert watch.logger.levels == {"info"}


def test_callers_that_share_a_log_have_one_outage_when_their_server_is_away(watch: Watch) -> None:
    for part in (" in partition 0", " in partition 1", " in partition 0", " in partition 1"):
        watch.fail(part=part, after=1)
    assert ["cannot take jobs: " in line for line in watch.lines] == [True]
    watch.answer(part=" in partition 1", after=1)
    watch.answer(part=" in partition 0", after=1)
    assert [line.split(", ")[0] for line in watch.lines] == ["worker w of queue orders reaches its server again"]


def test_each_of_those_that_share_a_log_may_lose_a_connection_without_an_outage(watch: Watch) -> None:
    for part in (" in partition 0", " in partition 1", " in partition 2"):
        watch.fail(part=part)
    watch.answer(part=" in partition 0")
    assert watch.logger.levels == {"info"}


def test_a_call_that_is_refused_to_one_of_those_that_share_a_log_concerns_it_alone(watch: Watch) -> None:
    refused = ServerRefused("NOPERM", "denied")
    watch.fail(RENEW, refused, part=" in partition 0")
    watch.answer(RENEW, after=1, part=" in partition 1")
    assert ["renew its leases in partition 0: denied" in line for line in watch.lines] == [True]
    watch.answer(RENEW, after=1, part=" in partition 0")
    told = "worker w of queue orders can renew its leases in partition 0 again, after 2.0 s and 1 failed tries"
    assert watch.lines == [told]


def test_parts_that_pause_hear_of_the_return_and_of_nothing_else(watch: Watch) -> None:
    heard: list[float] = []
    watch.log.on_return(lambda: heard.append(watch.now))
    watch.answer()
    watch.fail(TAKE, ScriptError("broken"))
    watch.answer(TAKE, after=1)
    assert heard == []
    watch.fail()
    watch.answer(RENEW, after=1)
    watch.answer(TAKE, after=1)
    assert heard == [102.0]


def test_an_error_whose_text_raises_is_logged_all_the_same(watch: Watch) -> None:
    watch.fail(error=Unprintable())  # not one of our errors, so it does not count as an outage
    assert "cannot be read" in watch.lines[0]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (59.9, "59.9 s"), (60, "1 min 0 s"), (3599, "59 min 59 s"), (7260, "2 h 1 min")],
)
def test_lengths_of_time_are_written_for_people(seconds: float, text: str) -> None:
    assert spent(seconds) == text
