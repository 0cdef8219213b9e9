"""The outcome of a run, by the way in which its handler ended, without a server."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from groupmq.client.job import Job
from groupmq.core.backoff import Backoff
from groupmq.core.codec import JSON
from groupmq.core.errors import ConfigurationError, FailJob, PayloadTooLarge, RateLimited, RetryJob, Snooze
from groupmq.core.queue_options import QueueOptions
from groupmq.core.record import Record
from groupmq.protocol import commands
from groupmq.protocol.commands import FailureOutcome, RateLimitedOutcome, RetryOutcome, SnoozeOutcome
from groupmq.worker.running.outcome import OutcomePolicy, RunReport, described
from tests.support.hostile import Opaque, Unprintable

OPTIONS = QueueOptions(name="q", max_payload=1000)
POLICY = OutcomePolicy(OPTIONS, Backoff.fixed(2))


def running(attempts_made: int = 0, max_attempts: int = 3, **options: Any) -> Job:
    stored = Record(0, 0, 0, 0, max_attempts, False, "g", options, b"1")
    job = Job(None, JSON, "id", "active", stored, 3)
    job.fence, job.attempts_made = 77, attempts_made
    return job


def retried(report: RunReport) -> tuple[int, bool, str]:
    """The delay of a retry, whether the group goes on, and the reason."""
    assert report.kind == "retrying"
    outcome = report.outcome
    assert isinstance(outcome, RetryOutcome)
    assert (outcome.kind, outcome.id, outcome.fence) == (commands.RETRY, "id", 77)
    return outcome.delay_ms, outcome.yields, outcome.reason


def failed(report: RunReport) -> FailureOutcome:
    assert report.kind == "failed"
    outcome = report.outcome
    assert isinstance(outcome, FailureOutcome)
    assert (outcome.kind, outcome.id, outcome.fence) == (commands.FAIL, "id", 77)
    return outcome


def test_a_value_returned_is_the_result() -> None:
    report = POLICY.returned(running(), {"ok": True})
    assert report.outcome == (commands.COMPLETE, "id", 77, b'{"ok":true}')
    assert (report.kind, report.error, report.result) == ("completed", None, b'{"ok":true}')


def test_nothing_returned_stores_nothing() -> None:
    report = POLICY.returned(running(), None)
    assert report.outcome == (commands.COMPLETE, "id", 77, None)


@pytest.mark.parametrize("value", [object(), "\ud800", {1: object()}, 1j])
def test_a_value_that_cannot_be_stored_fails_the_job_whatever_attempts_remain(value: object) -> None:
    report = POLICY.returned(running(max_attempts=10), value)
    assert failed(report).reason.startswith("ConfigurationError: return value: cannot be serialized")
    assert isinstance(report.error, ConfigurationError)


def test_a_value_too_large_fails_the_job_and_says_so() -> None:
    report = POLICY.returned(running(), "x" * 2000)
    assert isinstance(report.error, PayloadTooLarge)
    assert "return value: 2,002 bytes are more than max_payload (1,000 bytes)" in failed(report).reason


def test_an_error_is_retried_while_attempts_remain() -> None:
    error = ValueError("boom")
    report = POLICY.raised(running(), error)
    assert retried(report) == (2000, False, "ValueError: boom")
    assert report.error is error


@pytest.mark.parametrize(
    ("attempts_made", "max_attempts", "event"),
    [(0, 1, "failed"), (1, 3, "retrying"), (2, 3, "failed"), (5, 3, "failed")],
)
def test_max_attempts_is_the_total_number_of_runs(attempts_made: int, max_attempts: int, event: str) -> None:
    assert POLICY.raised(running(attempts_made, max_attempts), ValueError()).kind == event


def test_the_last_error_is_the_reason_of_the_failure_with_its_stack() -> None:
    try:
        raise ValueError("boom")
    except ValueError as error:
        report = POLICY.raised(running(2), error)
    outcome = failed(report)
    assert (outcome.reason, outcome.error) == ("ValueError: boom", "ValueError")
    assert outcome.stack.startswith("Traceback")
    assert "test_outcome.py" in outcome.stack


def test_fail_job_ends_the_job_at_once_in_its_own_words() -> None:
    report = POLICY.raised(running(max_attempts=10), FailJob("no such account"))
    assert failed(report).reason == "no such account"


@pytest.mark.parametrize(("delay", "ms"), [(0, 0), (1.5, 1500), (timedelta(minutes=1), 60_000)])
def test_retry_job_waits_as_long_as_it_says_not_as_the_policy_says(delay: Any, ms: int) -> None:
    assert retried(POLICY.raised(running(), RetryJob("later", delay=delay))) == (ms, False, "later")


@pytest.mark.parametrize("delay", [-1, "1", None, math.nan, math.inf, True, Opaque()])
def test_a_bad_delay_of_retry_job_does_not_cost_the_retry(delay: Any) -> None:
    ms, _, reason = retried(POLICY.raised(running(), RetryJob(delay=delay)))
    assert ms == 0
    assert reason.startswith("retry requested (RetryJob.delay: expected ")


def test_retry_job_uses_attempts_too() -> None:
    assert POLICY.raised(running(2), RetryJob()).kind == "failed"


@pytest.mark.parametrize(
    ("queue", "own", "yields"),
    [("hold", None, False), ("yield", None, True), ("hold", True, True), ("yield", False, False)],
)
def test_the_jobs_own_word_on_holding_its_group_comes_first(queue: Any, own: bool | None, yields: bool) -> None:
    judge = OutcomePolicy(replace(OPTIONS, on_retry=queue), Backoff.fixed(1))
    job = running() if own is None else running(y=own)
    assert retried(judge.raised(job, ValueError()))[1] is yields


def test_the_jobs_own_back_off_comes_first() -> None:
    assert retried(POLICY.raised(running(b=[7.0, 1.0, 7.0, 0.0]), ValueError()))[0] == 7000


def test_a_callable_policy_is_given_the_attempt_from_one_and_the_error() -> None:
    judge = OutcomePolicy(OPTIONS, lambda attempt, exc: attempt * 10 if isinstance(exc, KeyError) else 0)
    assert retried(judge.raised(running(1, 5), KeyError("x")))[0] == 20_000


@pytest.mark.parametrize(("after", "ms"), [(0, 0), (1.5, 1500), (timedelta(minutes=1), 60_000), (0.0001, 1)])
def test_rate_limited_rests_the_group_for_as_long_as_it_says(after: Any, ms: int) -> None:
    error = RateLimited("429", retry_after=after)
    report = POLICY.raised(running(), error)
    assert report.outcome == (commands.RATE_LIMITED, "id", 77, ms, "429", "groupmq.errors.RateLimited")
    assert (report.kind, report.error, report.yields) == ("rate_limited", error, False)


def test_rate_limited_rests_for_a_second_by_default() -> None:
    outcome = POLICY.raised(running(), RateLimited()).outcome
    assert isinstance(outcome, RateLimitedOutcome)
    assert outcome.delay_ms == 1000


@pytest.mark.parametrize("after", [-1, "1", None, math.nan, math.inf, True, Opaque(), 10**400])
def test_a_bad_retry_after_costs_neither_the_job_nor_the_service_it_calls(after: Any) -> None:
    outcome = POLICY.raised(running(), RateLimited(retry_after=after)).outcome
    assert isinstance(outcome, RateLimitedOutcome)
    assert outcome.delay_ms == 1000
    assert outcome.reason.startswith("rate limited (RateLimited.retry_after: expected ")


@pytest.mark.parametrize(("attempts_made", "max_attempts"), [(0, 1), (2, 3), (50, 3)])
def test_rate_limited_is_no_failure_even_in_the_last_attempt(attempts_made: int, max_attempts: int) -> None:
    assert POLICY.raised(running(attempts_made, max_attempts), RateLimited()).kind == "rate_limited"


def test_a_rate_limited_job_without_a_group_waits_outside() -> None:
    job = Job(None, JSON, "id", "active", Record(0, 0, 0, 0, 3, False, None, {}, b"1"), 3)
    assert POLICY.raised(job, RateLimited()).yields
    assert not POLICY.raised(job, RateLimited(retry_after=0)).yields


@pytest.mark.parametrize(("after", "ms"), [(0, 0), (1.5, 1500), (timedelta(minutes=1), 60_000)])
def test_snooze_brings_the_job_back_later(after: Any, ms: int) -> None:
    error = Snooze(after, "not yet")
    report = POLICY.raised(running(2, 3), error)
    assert report.outcome == (commands.SNOOZE, "id", 77, ms, False, "not yet", "groupmq.errors.Snooze")
    assert (report.kind, report.error, report.yields) == ("snoozed", error, False)


@pytest.mark.parametrize("after", [-1, "1", None, math.nan, math.inf, True, Opaque(), 10**400])
def test_a_bad_delay_of_snooze_costs_nothing_and_the_reason_says_so(after: Any) -> None:
    outcome = POLICY.raised(running(2, 3), Snooze(after, "not yet")).outcome
    assert isinstance(outcome, SnoozeOutcome)
    assert outcome.delay_ms == 1000
    assert outcome.reason.startswith("not yet (Snooze.delay: expected ")
    assert outcome.reason.endswith("; 1 s was used)")


def test_a_snoozed_job_yields_as_its_retries_do() -> None:
    assert POLICY.raised(running(y=True), Snooze(5)).yields
    assert not POLICY.raised(running(y=True), Snooze(0)).yields
    yields = OutcomePolicy(replace(OPTIONS, on_retry="yield"), Backoff.fixed(2))
    outcome = yields.raised(running(), Snooze(5)).outcome
    assert isinstance(outcome, SnoozeOutcome)
    assert outcome.yields


def broken_policy(answer: Any) -> OutcomePolicy:
    def policy(_attempt: int, _exc: BaseException) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return OutcomePolicy(OPTIONS, policy)


@pytest.mark.parametrize(
    "answer", [ZeroDivisionError("oops"), Unprintable(), None, "1", -1, math.nan, math.inf, True, Opaque(), 10**400]
)
def test_a_broken_policy_does_not_cost_the_retry(answer: Any) -> None:
    ms, _, reason = retried(broken_policy(answer).raised(running(), ValueError("boom")))
    assert 500 <= ms <= 625
    assert reason.startswith("ValueError: boom (the back-off policy raised ")
    assert reason.endswith("; the default was used)")


def test_a_broken_policy_cannot_make_the_report_unsendable_or_huge() -> None:
    for text in ("\ud800", "x" * 100_000):
        reason = retried(broken_policy(ValueError(text)).raised(running(), ValueError("boom")))[2]
        assert len(reason.encode()) < 5000


@pytest.mark.parametrize("error", [Unprintable(), FailJob(Opaque()), ExceptionGroup("many", [Unprintable()])])
def test_an_error_that_cannot_be_printed_is_reported_by_its_name(error: BaseException) -> None:
    reason, stack, _ = described(error)
    assert reason
    assert isinstance(stack, str)
    assert POLICY.raised(running(), error).kind in ("retrying", "failed")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError(), "ValueError"),
        (ValueError("x"), "ValueError: x"),
        (FailJob(), "FailJob"),
        (FailJob("why"), "why"),
        (RetryJob(""), "RetryJob"),
        (KeyError("k"), "KeyError: 'k'"),
        (SystemExit(3), "SystemExit: 3"),
        (ValueError("\ud800"), "ValueError: \\ud800"),
    ],
)
def test_the_reason_is_what_the_error_says(error: BaseException, reason: str) -> None:
    assert described(error)[0] == reason


def test_reason_and_stack_are_bounded() -> None:
    error: BaseException = ValueError("x" * 1_000_000)
    reason, stack, _ = described(error)
    assert len(reason) < 3000
    assert len(stack) < 20_000


def test_a_released_job_says_no_more_than_that() -> None:
    report = POLICY.released(running())
    assert report.outcome == (commands.RELEASE, "id", 77, False)
    assert report.kind == "released"
