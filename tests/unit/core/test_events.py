"""Entries of the event log, read without a server: the fields of each kind, their order, and gaps."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from groupmq.core.codec import JSON
from groupmq.core.errors import ConfigurationError
from groupmq.core.events import ENDS, KINDS, EndOf, Entry, Event, LogReader, Position, gap, newer, read

AT = 1_700_000_000_123
WHEN = datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=UTC)


class Upper:
    """A serializer of the user."""

    def encode(self, value: Any, /) -> bytes:
        return str(value).encode()

    def decode(self, raw: bytes, /) -> Any:
        return raw.decode().upper()


def raw(*kinds: list[Any], blob: bytes | None = None, number: int = 7, stream_id: str = "1700-3") -> list[Any]:
    """An entry as the server returns it."""
    fields = [b"e", msgspec.msgpack.encode([number, AT, *kinds])]
    if blob is not None:
        fields += [b"b", blob]
    return [stream_id.encode(), fields]


def entry(number: int, stream_id: str) -> Entry:
    return read(raw(["added", ["j"], ["g"]], number=number, stream_id=stream_id), JSON)


def only(*kinds: list[Any], **more: Any) -> Event:
    [event] = read(raw(*kinds, **more), JSON).events
    return event


def test_every_event_has_an_id_a_kind_its_job_its_group_and_a_time() -> None:
    found = read(raw(["added", ["a", "b"], ["g", ""]]), JSON)
    assert (found.stream_id, found.number) == ("1700-3", 7)
    assert [(e.id, e.kind, e.job_id, e.group_id, e.at) for e in found.events] == [
        ("1700-3/7/0", "added", "a", "g", WHEN),
        ("1700-3/7/1", "added", "b", None, WHEN),
    ]
    first = found.events[0]
    assert (first.attempt, first.worker, first.reason, first.progress, first.result) == (None,) * 5


def test_active_has_attempt_and_worker() -> None:
    found = read(raw(["active", ["a", "b"], ["g", "h"], [1, 3], "orders-1"]), JSON).events
    assert [(e.attempt, e.worker) for e in found] == [(1, "orders-1"), (3, "orders-1")]


def test_completed_jobs_share_one_blob_of_results() -> None:
    columns = ["completed", ["a", "b", "c", "d"], ["", "", "", ""], [1, 1, 2, 1], [3, -1, 8, 2]]
    found = read(raw(columns, blob=b'"x"{"n": 1}42'), JSON).events
    assert [(e.result, e.stored) for e in found] == [("x", False), (None, False), ({"n": 1}, False), (42, False)]


def test_a_result_too_large_for_an_event_is_stored_with_the_job() -> None:
    event = only(["completed", ["a"], ["g"], [1], [-2]])
    assert (event.stored, event.result, event.raw_result) == (True, None, None)


def test_results_are_read_by_the_queues_own_serializer_and_only_when_asked_for() -> None:
    [event] = read(raw(["completed", ["a"], ["g"], [1], [3]], blob=b"abc"), Upper()).events
    assert event.raw_result == b"abc"
    assert event.result == "ABC"


def test_retrying_has_the_delay_in_seconds_and_the_reason() -> None:
    event = only(["retrying", ["a"], ["g"], [2], [1500], ["ValueError: no"]])
    assert (event.attempt, event.delay, event.reason) == (2, 1.5, "ValueError: no")


def test_failed_has_reason_and_stack() -> None:
    event = only(["failed", ["a"], ["g"], [3], ["boom"], ["Traceback ..."]])
    assert (event.attempt, event.reason, event.stacktrace) == (3, "boom", "Traceback ...")


def test_stalled_shows_whether_that_was_the_end() -> None:
    found = read(raw(["stalled", ["a", "b"], ["g", "g"], [1, 3], [False, True]]), JSON).events
    assert [(e.attempt, e.final) for e in found] == [(1, False), (3, True)]


@pytest.mark.parametrize("value", ["null", "0.5", '{"done": [1, 2]}', '"ü"', "false"])
def test_progress_is_any_json(value: str) -> None:
    assert only(["progress", ["a"], ["g"], [value]]).progress == msgspec.json.decode(value)


@pytest.mark.parametrize("kind", ["drained", "paused", "resumed"])
def test_what_concerns_the_queue_has_no_job(kind: str) -> None:
    event = only([kind, [""], [""]])
    assert (event.kind, event.job_id, event.group_id) == (kind, None, None)
    assert only([kind, [""], ["g"]]).group_id == "g"


def test_jobs_that_were_taken_ahead_become_active_when_the_one_before_them_has_ended() -> None:
    found = read(
        raw(
            ["retrying", ["d"], ["g"], [1], [0], ["why"]],
            ["begun", ["d"], ["g"], [1], ["w"]],
            ["completed", ["a", "b", "c"], ["g", "g", "g"], [2, 1, 1], [1, -1, 2], [0, 1, 1], "w"],
            blob=b"123",
        ),
        JSON,
    ).events
    assert [(e.kind, e.job_id) for e in found] == [
        ("completed", "a"),
        ("active", "b"),
        ("completed", "b"),
        ("active", "c"),
        ("completed", "c"),
        ("active", "d"),
        ("retrying", "d"),
    ]
    assert [e.result for e in found if e.kind == "completed"] == [1, None, 23]
    assert [(e.attempt, e.worker) for e in found if e.kind == "active"] == [(1, "w")] * 3


def test_within_an_entry_runs_end_before_others_begin() -> None:
    found = read(
        raw(
            ["active", ["new"], [""], [1], "w"],
            ["drained", [""], [""]],
            ["added", ["fresh"], [""]],
            ["failed", ["old"], [""], [1], ["r"], [""]],
            ["completed", ["done"], [""], [1], [-1]],
            ["stalled", ["old"], [""], [1], [True]],
        ),
        JSON,
    ).events
    assert [e.kind for e in found] == ["completed", "stalled", "failed", "added", "active", "drained"]
    assert [Position.parse(e.id).at for e in found] == list(range(6))


def test_kinds_of_a_later_release_are_passed_over() -> None:
    found = read(raw(["teleported", ["a"], ["g"], {"x": 1}], ["added", ["b"], ["g"]]), JSON).events
    assert [(e.kind, e.job_id) for e in found] == [("added", "b")]


def test_columns_of_a_later_release_are_passed_over() -> None:
    assert only(["removed", ["a"], ["g"], ["by whom"]]).job_id == "a"


def test_the_kinds_are_those_of_the_contract() -> None:
    promised = (
        "added active progress completed retrying failed stalled removed drained paused resumed blocked unblocked"
    )
    assert set(KINDS) == {*promised.split(), "gap"}
    assert set(KINDS) > ENDS


def test_a_position_is_read_back_from_the_id_of_an_event() -> None:
    assert Position.parse("1700-3/7/2") == Position("1700-3", 7, 2)
    assert str(Position.parse("1700-3/7/-1")) == "1700-3/7/-1"


@pytest.mark.parametrize("bad", ["", "1700-3", "1700/7/2", "a-b/7/2", "1700-3/7", "1700-3/7/2/9", None, 5, "1-2-3/4/5"])
def test_what_is_no_id_of_an_event_is_refused(bad: object) -> None:
    with pytest.raises(ConfigurationError, match="since: expected the id of an event"):
        Position.parse(bad)


def test_a_reader_reports_no_gap_while_entries_follow_each_other() -> None:
    reader = LogReader("10-0", 4)
    assert [e.kind for n, at in ((5, "10-1"), (6, "11-0")) for e in reader.take(entry(n, at))] == ["added"] * 2
    assert reader.at == "11-0"


def test_a_reader_reports_a_gap_before_the_first_entry_after_it() -> None:
    found = LogReader("10-0", 4).take(entry(9, "12-0"))
    assert [(e.kind, e.job_id) for e in found] == [("gap", None), ("added", "j")]
    assert Position.parse(found[0].id) == Position("12-0", 9, -1)


def test_a_log_that_began_anew_is_a_gap() -> None:
    assert [e.kind for e in LogReader("10-0", 4).take(entry(1, "12-0"))] == ["gap", "added"]


def test_a_reader_returns_no_entry_twice() -> None:
    reader = LogReader("12-0", 9)
    assert reader.take(entry(9, "12-0")) == []
    assert reader.take(entry(8, "9-5")) == []
    assert [e.kind for e in reader.take(entry(10, "12-1"))] == ["added"]


def test_a_gap_has_the_time_of_what_follows_it() -> None:
    assert gap(entry(9, "12-0")).at == WHEN


@pytest.mark.parametrize(("one", "other"), [("10-0", "9-9"), ("10-10", "10-9"), ("100-0", "99-0")])
def test_places_in_the_log_compare_as_numbers(one: str, other: str) -> None:
    assert newer(one, other)
    assert not newer(other, one)
    assert not newer(one, one)


def happened(kind: Any, at_ms: int) -> Event:
    return Event("1-1", kind, "same", "g", datetime.fromtimestamp(at_ms / 1000, UTC))


@pytest.mark.parametrize("lasted_ms", [0, 1])
@pytest.mark.parametrize("end", ["completed", "failed", "removed"])
def test_the_end_of_a_job_is_the_last_one_before_another_of_its_id_begins(end: str, lasted_ms: int) -> None:
    """The second job is gone as well, so its creation time is unknown."""
    own = happened(end, AT + lasted_ms)
    search = EndOf("same", AT)
    for event in (happened("removed", AT), happened("added", AT), own, happened("added", AT + 5)):
        search.see(event)
    search.see(happened("completed", AT + 6))
    assert search.found is own
    assert search.sure
