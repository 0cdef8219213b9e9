"""The outcome of each job of a batch, by the way in which the handler ended."""

from __future__ import annotations

from typing import Any

import pytest

from groupmq import BatchFailed, ConfigurationError, FailJob, Job, RateLimited, RetryJob, Snooze
from groupmq.core.backoff import Backoff
from groupmq.core.codec import JSON
from groupmq.core.queue_options import QueueOptions
from groupmq.core.record import Record
from groupmq.protocol.commands import RetryOutcome
from groupmq.worker.running import batch_outcome
from groupmq.worker.running.outcome import OutcomePolicy, RunReport

HOLDS = OutcomePolicy(QueueOptions(name="q"), Backoff.fixed(1))
YIELDS = OutcomePolicy(QueueOptions(name="q", on_retry="yield"), Backoff.fixed(1))
BLOCKS = OutcomePolicy(QueueOptions(name="q", on_retry="yield", on_failed="hold"), Backoff.fixed(1))


def batch(
    n: int = 4, group: str | None = "g", attempts_made: int = 0, max_attempts: int = 3, **options: Any
) -> list[Job]:
    jobs = []
    for at in range(n):
        record = Record(0, 0, 0, 0, max_attempts, False, group, options, b"1")
        job = Job(None, JSON, f"j{at}", "active", record, max_attempts)
        job.fence, job.attempts_made = at + 1, attempts_made
        jobs.append(job)
    return jobs


def events(reports: list[RunReport]) -> list[str]:
    return [report.kind for report in reports]


def retry(report: RunReport) -> RetryOutcome:
    assert isinstance(report.outcome, RetryOutcome)
    return report.outcome


def test_none_completes_every_job() -> None:
    assert events(batch_outcome.returned(HOLDS, batch(), None)) == ["completed"] * 4


def test_a_list_holds_the_result_of_each_job() -> None:
    reports = batch_outcome.returned(HOLDS, batch(3), [1, None, "x"])
    assert [(report.kind, report.result) for report in reports] == [
        ("completed", b"1"),
        ("completed", None),
        ("completed", b'"x"'),
    ]


@pytest.mark.parametrize("value", [[1, 2], [1, 2, 3, 4, 5], "four", {"a": 1}, 4])
def test_any_other_return_value_fails_the_attempt_of_the_first_job_with_an_error(value: Any) -> None:
    reports = batch_outcome.returned(HOLDS, batch(), value)
    assert events(reports) == ["retrying", "released", "released", "released"]
    assert "a list of 4 results" in str(reports[0].error)


def test_an_exception_in_the_list_stands_for_a_failed_job_and_those_behind_it_in_its_group_go_back() -> None:
    reports = batch_outcome.returned(HOLDS, batch(), ["a", ValueError("boom"), "c", ValueError("late")])
    assert events(reports) == ["completed", "retrying", "released", "released"]
    assert retry(reports[1]).reason == "ValueError: boom"


def test_behind_a_job_that_does_not_hold_its_group_the_others_end_as_they_say() -> None:
    given = ["a", ValueError("boom"), "c", FailJob("no use")]
    assert events(batch_outcome.returned(YIELDS, batch(), given)) == ["completed", "retrying", "completed", "failed"]
    given = ["a", FailJob("no use"), "c", None]
    assert events(batch_outcome.returned(HOLDS, batch(), given)) == ["completed", "failed", "completed", "completed"]


def test_behind_a_job_that_blocks_its_group_the_others_go_back() -> None:
    given = ["a", FailJob("no use"), "c", FailJob("late")]
    back = ["completed", "failed", "released", "released"]
    assert events(batch_outcome.returned(BLOCKS, batch(), given)) == back
    assert events(batch_outcome.returned(HOLDS, batch(f=True), given)) == back
    assert events(batch_outcome.returned(BLOCKS, batch(), ["a", object(), "c", None])) == back
    as_they_say = ["completed", "failed", "completed", "failed"]
    assert events(batch_outcome.returned(BLOCKS, batch(f=False), given)) == as_they_say
    assert events(batch_outcome.returned(BLOCKS, batch(group=None), given)) == as_they_say


def test_a_result_that_cannot_be_stored_blocks_the_group_too_also_in_the_prefix_of_batch_failed() -> None:
    failed = BatchFailed(at=2, results=["a", object()])
    assert events(batch_outcome.raised(BLOCKS, batch(), failed)) == ["completed", "failed", "released", "released"]
    late = batch_outcome.stopped(BLOCKS, batch(), failed, "timeout", {4}, 1.0, abandoned=False)
    assert events(late) == ["completed", "failed", "released", "failed"]


def test_behind_a_job_that_rests_its_group_the_others_go_back() -> None:
    given = ["a", RateLimited(retry_after=1), "c"]
    assert events(batch_outcome.returned(HOLDS, batch(3), given)) == ["completed", "rate_limited", "released"]


def test_behind_a_snoozed_job_the_others_go_back_unless_it_waits_outside_its_group() -> None:
    given = ["a", Snooze(30), "c"]
    assert events(batch_outcome.returned(HOLDS, batch(3), given)) == ["completed", "snoozed", "released"]
    assert events(batch_outcome.returned(YIELDS, batch(3), given)) == ["completed", "snoozed", "completed"]


def test_a_batch_that_is_snoozed_holds_its_group_by_its_first_job_and_without_a_group_all_wait() -> None:
    assert events(batch_outcome.raised(HOLDS, batch(3), Snooze(30))) == ["snoozed", "released", "released"]
    assert events(batch_outcome.raised(HOLDS, batch(3, group=None), Snooze(30))) == ["snoozed"] * 3


def test_without_a_group_each_job_ends_as_it_says() -> None:
    given = ["a", ValueError("boom"), "c", ValueError("boom")]
    reports = batch_outcome.returned(HOLDS, batch(group=None), given)
    assert events(reports) == ["completed", "retrying", "completed", "retrying"]


def test_batch_failed_completes_the_prefix_and_retries_that_job() -> None:
    reports = batch_outcome.raised(HOLDS, batch(), BatchFailed(at=2, reason="row 2 is bad"))
    assert events(reports) == ["completed", "completed", "retrying", "released"]
    assert retry(reports[2]).reason == "row 2 is bad"


def test_batch_failed_may_bring_the_results_of_the_prefix() -> None:
    reports = batch_outcome.raised(HOLDS, batch(), BatchFailed(at=2, reason="bad", results=[10, 20]))
    assert [report.result for report in reports] == [b"10", b"20", None, None]


def test_without_a_group_the_rest_behind_batch_failed_is_untouched_too() -> None:
    reports = batch_outcome.raised(HOLDS, batch(group=None), BatchFailed(at=1))
    assert events(reports) == ["completed", "retrying", "released", "released"]


@pytest.mark.parametrize(
    ("cause", "event"),
    [(FailJob("x"), "failed"), (RetryJob("x", delay=9), "retrying"), (RateLimited("x"), "rate_limited")],
)
def test_the_cause_of_batch_failed_decides_about_its_job(cause: Exception, event: str) -> None:
    failed = BatchFailed(at=1)
    failed.__cause__ = cause
    reports = batch_outcome.raised(HOLDS, batch(), failed)
    assert events(reports) == ["completed", event, "released", "released"]
    if event == "retrying":
        assert retry(reports[1]).delay_ms == 9000


@pytest.mark.parametrize("failed", [BatchFailed(at=4), BatchFailed(at=2, results=[1])])
def test_a_batch_failed_that_does_not_fit_says_nothing(failed: BatchFailed) -> None:
    reports = batch_outcome.raised(HOLDS, batch(), failed)
    assert events(reports) == ["retrying", "released", "released", "released"]
    assert "does not fit a batch of 4 jobs" in str(reports[0].error)


def test_the_error_of_a_batch_of_one_uses_the_singular() -> None:
    (alone,) = batch_outcome.raised(HOLDS, batch()[:1], BatchFailed(at=0, results=[1]))
    assert "BatchFailed(at=0) with 1 result does not fit a batch of 1 job:" in str(alone.error)
    (alone,) = batch_outcome.returned(HOLDS, batch()[:1], [1, 2])
    assert "a list of 1 result, one for each job; got 2 results" in str(alone.error)


@pytest.mark.parametrize("at", [-1, 1.5, True, "2"])
def test_batch_failed_needs_an_index(at: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"BatchFailed\.at: expected the index"):
        BatchFailed(at=at)


def test_a_plain_exception_costs_the_first_job_an_attempt_and_the_others_nothing() -> None:
    reports = batch_outcome.raised(HOLDS, batch(), ValueError("boom"))
    assert events(reports) == ["retrying", "released", "released", "released"]


def test_fail_job_names_no_job_of_several_so_none_fails_for_good() -> None:
    reports = batch_outcome.raised(HOLDS, batch(), FailJob("no use"))
    assert events(reports) == ["retrying", "released", "released", "released"]
    assert events(batch_outcome.raised(HOLDS, batch(1), FailJob("no use"))) == ["failed"]


def test_rate_limited_rests_the_group_or_delays_every_job_without_one() -> None:
    limited = RateLimited(retry_after=5)
    assert events(batch_outcome.raised(HOLDS, batch(3), limited)) == ["rate_limited", "released", "released"]
    assert events(batch_outcome.raised(HOLDS, batch(3, group=None), limited)) == ["rate_limited"] * 3


def stopped(reason: Any, error: BaseException, cancelled: set[int], n: int = 3) -> list[RunReport]:
    return batch_outcome.stopped(HOLDS, batch(n), error, reason, cancelled, 1.0, abandoned=False)


def test_a_batch_that_is_stopped_by_closing_goes_back_untouched() -> None:
    assert events(stopped("closing", TimeoutError(), set())) == ["released"] * 3


def test_a_timeout_costs_the_first_job_an_attempt() -> None:
    reports = stopped("timeout", TimeoutError(), set())
    assert events(reports) == ["retrying", "released", "released"]
    assert "timeout of 1 s" in str(reports[0].error)


def test_a_cancelled_job_fails_and_the_others_go_back() -> None:
    assert events(stopped("cancelled", TimeoutError(), {2})) == ["released", "failed", "released"]


def test_a_handler_that_says_how_far_it_came_when_it_is_stopped_is_believed() -> None:
    assert events(stopped("closing", BatchFailed(at=2), set())) == ["completed", "completed", "released"]
    assert events(stopped("timeout", BatchFailed(at=1), set())) == ["completed", "retrying", "released"]
    assert events(stopped("cancelled", BatchFailed(at=1), {3})) == ["completed", "released", "failed"]


def test_a_job_on_its_last_attempt_is_alone_and_fails_for_good() -> None:
    last = batch(1, attempts_made=2)
    assert events(batch_outcome.raised(HOLDS, last, ValueError("boom"))) == ["failed"]
