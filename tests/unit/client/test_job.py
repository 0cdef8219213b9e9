"""The job as users see it: a snapshot of plain values, decoded when asked for."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from groupmq.client.answers.jobs import job_from, job_taken
from groupmq.client.job import Job
from groupmq.core.backoff import Backoff
from groupmq.core.codec import JSON
from groupmq.core.queue_options import QueueOptions
from groupmq.core.record import Record, Stored, pack_body, pack_order
from groupmq.protocol.commands import FRESH, StoredJob, StoredState, Taken

OPTIONS = QueueOptions(name="q", max_attempts=3)
T0 = 1_700_000_000_000


class Counting:
    """JSON that counts how often it decodes."""

    def __init__(self) -> None:
        self.decoded = 0

    def encode(self, value: Any, /) -> bytes:
        return JSON.encode(value)

    def decode(self, raw: bytes, /) -> Any:
        self.decoded += 1
        return JSON.decode(raw)


def stored(**changes: Any) -> Record:
    return Record(5, -7, 3, T0, 0, True, "g", {}, b'{"x":1}')._replace(**changes)


def make(job_id: str, state: str, found: Stored) -> Job:
    return Job(None, JSON, job_id, state, found, OPTIONS.max_attempts)


def raw(options: dict[str, Any] | None = None) -> bytes:
    head = (65535 - 5).to_bytes(2, "big") + pack_order(-7) + (2**48 - 4).to_bytes(6, "big") + T0.to_bytes(6, "big")
    return head + pack_body(0, True, b"g", options, b'{"x":1}')


def view(**changes: Any) -> StoredJob:
    return StoredJob("waiting", raw(), FRESH, None, 0.0, 0, 0, "", 0)._replace(**changes)


def test_a_new_job_has_run_never() -> None:
    job = make("id", "waiting", stored())
    assert (job.id, job.group_id, job.state, job.data, job.priority, job.order_ms) == (
        "id",
        "g",
        "waiting",
        {"x": 1},
        5,
        -7,
    )
    assert (job.attempts_made, job.attempt, job.max_attempts, job.fence, job.duplicate) == (0, 1, 3, 0, False)
    assert job.created_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    assert job.run_at is job.started_at is job.finished_at is None
    assert job.return_value is job.failed_reason is job.stacktrace is job.worker is job.progress is None


def test_the_jobs_own_settings_come_first() -> None:
    job = make(
        "id", "waiting", stored(max_attempts=9, options={"t": 1500, "b": [1.0, 2.0, 3.0, 0.0], "y": True, "n": "x"})
    )
    assert (job.max_attempts, job.timeout, job.on_retry) == (9, 1.5, "yield")
    assert job.backoff == Backoff.exponential(1, 2, 3, 0)
    assert make("id", "waiting", stored(options={"y": False})).on_retry == "hold"


def test_data_and_result_are_decoded_once_and_when_asked() -> None:
    serializer = Counting()
    job = Job(None, serializer, "id", "completed", stored(), 3)
    job._raw_result = b"[1]"
    assert serializer.decoded == 0
    assert (job.data, job.data, job.return_value, job.return_value) == ({"x": 1}, {"x": 1}, [1], [1])
    assert serializer.decoded == 2


def test_a_result_of_null_is_none() -> None:
    job = make("id", "completed", stored())
    job._raw_result = b"null"
    assert job.return_value is None


def test_a_delayed_job_says_when_it_may_start() -> None:
    job = job_from(make, "id", view(state="delayed", score=float(T0 + 500)))
    assert job.run_at == datetime.fromtimestamp((T0 + 500) / 1000, UTC)


def test_a_job_in_its_back_off_says_when_it_may_start() -> None:
    job = job_from(make, "id", view(hold=T0 + 250, stored=StoredState(1, 0, T0, 0, "w", "boom", "stack")))
    assert job.run_at == datetime.fromtimestamp((T0 + 250) / 1000, UTC)
    assert (job.attempts_made, job.attempt, job.failed_reason, job.stacktrace) == (1, 2, "boom", "stack")


def test_a_running_job_says_who_runs_it_since_when() -> None:
    job = job_from(make, "id", view(state="active", fence=77, started=T0, worker="w1"))
    assert (job.fence, job.worker, job.started_at) == (77, "w1", datetime.fromtimestamp(T0 / 1000, UTC))


def test_a_finished_job_says_when_and_with_what() -> None:
    end = StoredState(2, 1, T0, T0 + 5, "w", "", "")
    job = job_from(make, "id", view(state="completed", stored=end, result=b'"ok"'))
    assert (job.return_value, job.attempts_made, job.stalls, job.worker) == ("ok", 2, 1, "w")
    assert job.finished_at == datetime.fromtimestamp((T0 + 5) / 1000, UTC)
    assert job.failed_reason is None


def test_a_taken_job_is_active_under_its_fence() -> None:
    job = job_taken(make, Taken("id", 99, FRESH, raw()), T0, "w")
    assert (job.state, job.fence, job.attempt, job.worker) == ("active", 99, 1, "w")
    again = job_taken(make, Taken("id", 99, StoredState(2, 1, T0, 0, "v", "boom", ""), raw()), T0, "w")
    assert (again.attempts_made, again.attempt, again.stalls, again.failed_reason) == (2, 3, 1, "boom")


def test_a_dictionary_of_a_job_holds_everything_and_is_json() -> None:
    end = StoredState(2, 1, T0, T0 + 5, "w", "why", "stack")
    found = job_from(make, "id", view(state="failed", stored=end)).to_dict()
    assert json.loads(json.dumps(found)) == {
        "id": "id",
        "group_id": "g",
        "data": {"x": 1},
        "state": "failed",
        "priority": 5,
        "order_ms": -7,
        "attempts_made": 2,
        "attempt": 2,
        "max_attempts": 3,
        "created_at": "2023-11-14T22:13:20+00:00",
        "run_at": None,
        "expires_at": None,
        "started_at": "2023-11-14T22:13:20+00:00",
        "finished_at": "2023-11-14T22:13:20.005000+00:00",
        "blocks_since": None,
        "return_value": None,
        "failed_reason": "why",
        "error_class": None,
        "stacktrace": "stack",
        "progress": None,
        "worker": "w",
        "fence": 0,
        "duplicate": False,
        "timeout": None,
        "headers": {},
        "logs": [],
    }


@pytest.mark.parametrize(("group", "shown"), [("g", "<Job 'id' of 'g' waiting>"), (None, "<Job 'id' waiting>")])
def test_a_job_shows_itself_in_one_line(group: str | None, shown: str) -> None:
    assert repr(make("id", "waiting", stored(group_id=group))) == shown


def test_a_refreshed_job_keeps_only_that_it_was_a_duplicate() -> None:
    job = make("id", "waiting", stored())
    job.duplicate = True
    assert job.data == {"x": 1}
    job._copy_from(job_from(make, "id", view(state="active", fence=5)))
    assert (job.state, job.fence, job.duplicate, job.data) == ("active", 5, True, {"x": 1})
