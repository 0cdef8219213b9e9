"""Back-off policies: the delays that they give, and the values that are refused."""

from __future__ import annotations

import math
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupmq import Queue, Worker
from groupmq.core import backoff as backoffs
from groupmq.core.backoff import Backoff
from groupmq.core.errors import ConfigurationError
from groupmq.sync import Queue as BlockingQueue


def test_exponential_grows_from_the_base_up_to_the_maximum() -> None:
    policy = Backoff.exponential(base=0.5, factor=2, max=30, jitter=0)
    assert [policy.delay(n) for n in range(1, 9)] == [0.5, 1, 2, 4, 8, 16, 30, 30]


def test_the_default_is_exponential_from_half_a_second_to_thirty() -> None:
    assert Backoff.exponential(base=0.5, factor=2, max=30, jitter=0.25) == backoffs.DEFAULT


@given(st.integers(1, 200), st.floats(0, 1))
def test_jitter_only_lengthens_and_by_no_more_than_its_share(attempt: int, jitter: float) -> None:
    exact = Backoff.exponential(jitter=0).delay(attempt)
    assert exact <= Backoff.exponential(jitter=jitter).delay(attempt) <= exact * (1 + jitter) + 1e-9


def test_an_attempt_beyond_the_range_of_floats_waits_the_maximum() -> None:
    assert Backoff.exponential(max=30, jitter=0).delay(65_535) == 30


def test_a_base_of_zero_never_waits() -> None:
    policy = Backoff.exponential(base=0, jitter=0)
    assert [policy.delay(n) for n in (1, 10, 65_535)] == [0, 0, 0]


def test_fixed_waits_the_same_after_every_attempt() -> None:
    policy = Backoff.fixed(timedelta(seconds=3))
    assert [policy.delay(n) for n in (1, 2, 65_535)] == [3, 3, 3]


@given(st.floats(0, 1e6), st.floats(1, 10), st.floats(0, 1e6), st.floats(0, 1))
def test_a_policy_comes_back_from_its_stored_form(base: float, factor: float, most: float, jitter: float) -> None:
    policy = Backoff.exponential(base, factor, most, jitter)
    assert Backoff.unpacked(policy.packed()) == policy


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"base": -1}, "base"),
        ({"base": "1"}, "base"),
        ({"base": math.nan}, "base"),
        ({"max": -1}, "max"),
        ({"max": math.inf}, "max"),
        ({"factor": 0.5}, "factor"),
        ({"factor": True}, "factor"),
        ({"factor": math.nan}, "factor"),
        ({"factor": "2"}, "factor"),
        ({"jitter": -0.1}, "jitter"),
        ({"jitter": 1.1}, "jitter"),
        ({"jitter": True}, "jitter"),
        ({"jitter": math.nan}, "jitter"),
    ],
)
def test_a_bad_argument_is_refused_by_name(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^{named}: expected .*, got "):
        Backoff.exponential(**arguments)


@pytest.mark.parametrize("value", [-1, "5", True, math.nan, math.inf, [], None, {"base": 1}])
def test_what_is_no_policy_is_refused_by_name(value: object) -> None:
    with pytest.raises(
        ConfigurationError,
        match=r"^backoff: expected a Backoff, seconds, or a callable \(attempt, exc\) -> seconds or \(attempt\) -> "
        r"seconds, got ",
    ):
        backoffs.checked(value, "backoff")


def test_a_number_or_timedelta_is_a_fixed_delay() -> None:
    assert backoffs.checked(2, "backoff") == backoffs.checked(timedelta(seconds=2), "backoff") == Backoff.fixed(2)


def test_a_callable_is_given_attempt_and_error() -> None:
    error = RuntimeError("boom")
    seen: list[object] = []

    def policy(attempt: int, exc: BaseException) -> float:
        seen.append((attempt, exc))
        return attempt * 1.5

    assert backoffs.delay_after(backoffs.checked(policy, "backoff"), 2, error) == 3.0
    assert seen == [(2, error)]


class Doubling:
    def __call__(self, attempt: int) -> float:
        return 2.0**attempt

    def of_both(self, attempt: int, exc: BaseException) -> float:
        return 2.0**attempt

    async def later(self, attempt: int) -> float:
        return 2.0**attempt


@pytest.mark.parametrize(
    "policy",
    [
        lambda attempt: 2.0**attempt,
        lambda attempt, *, base=2.0: base**attempt,
        lambda attempt, exc=None: 2.0**attempt,
        lambda *args: 2.0 ** args[0],
        Doubling(),
        Doubling().of_both,
        partial(lambda base, attempt: base**attempt, 2.0),
    ],
)
def test_a_callable_may_take_the_attempt_alone(policy: Any) -> None:
    assert backoffs.delay_after(backoffs.checked(policy, "backoff"), 3, RuntimeError()) == 8.0


def three(attempt: int, exc: BaseException, more: int) -> float:
    return 1.0


@pytest.mark.parametrize(
    ("policy", "shown"),
    [
        (three, r"three\(attempt: .*, exc: .*, more: .*\)"),
        (lambda: 1.0, r".*<lambda>\(\)"),
        (lambda *, attempt: 1.0, r".*<lambda>\(\*, attempt\)"),
    ],
)
def test_a_callable_of_other_arguments_is_refused_with_its_signature(policy: Any, shown: str) -> None:
    expected = r"a callable of one argument \(attempt\) or two \(attempt, exc\)"
    with pytest.raises(ConfigurationError, match=rf"^backoff: expected {expected}, got {shown}$"):
        backoffs.checked(policy, "backoff")


def test_a_callable_is_checked_where_it_is_given() -> None:
    queue = Queue("orders")
    for give in (
        lambda: Queue("orders", backoff=lambda: 1),  # type: ignore[arg-type]
        lambda: BlockingQueue("orders", backoff=lambda: 1),  # type: ignore[arg-type]
        lambda: Worker(queue, print, backoff=lambda: 1),  # type: ignore[arg-type]
        lambda: queue.create_job(1).backoff(lambda: 1),
    ):
        with pytest.raises(ConfigurationError, match=r"^backoff: expected a callable of one argument"):
            give()


def test_an_async_callable_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"^backoff: .* got the coroutine function Doubling.later\(attempt"):
        backoffs.checked(Doubling().later, "backoff")


def test_a_callable_without_a_signature_is_accepted() -> None:
    builtin: Any = max
    assert backoffs.checked(builtin, "backoff") is builtin


def test_a_coroutine_as_answer_is_an_error_and_leaves_no_warning_behind() -> None:
    later = Doubling().later
    with pytest.raises(ConfigurationError, match=r"^backoff: expected "):
        backoffs.delay_after(backoffs.checked(lambda attempt: later(attempt), "backoff"), 1, RuntimeError())


@pytest.mark.parametrize("answer", [None, "1", -1, math.nan, True])
def test_nonsense_of_a_callable_is_an_error_that_says_so(answer: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^backoff: expected "):
        backoffs.delay_after(lambda _attempt, _exc: answer, 1, RuntimeError())
