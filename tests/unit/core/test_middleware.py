"""Hooks around a handler: their order, their allowed forms, and what happens if one raises."""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any

import pytest

from groupmq.client.job import Job
from groupmq.core.codec import JSON
from groupmq.core.errors import ConfigurationError
from groupmq.core.middleware import around, checked, headers
from groupmq.core.record import Record

JOB = Job(None, JSON, "id", "active", Record(0, 0, 0, 0, 3, False, "g", {}, b"1"), 3)


class Noting:
    """Records which hooks are called; async on request."""

    def __init__(self, name: str, notes: list[str], *, asynchronous: bool = False, broken: str = "") -> None:
        self.name, self.notes, self.asynchronous, self.broken = name, notes, asynchronous, broken

    def _note(self, what: str) -> Any:
        def note() -> None:
            self.notes.append(f"{what} {self.name}")
            if what.startswith(self.broken or "-"):
                raise KeyError(f"{self.broken} of {self.name}")

        async def later() -> None:
            await asyncio.sleep(0)
            note()

        return later() if self.asynchronous else note()

    def before(self, job: Job) -> Any:
        return self._note("before")

    def after(self, job: Job, result: Any) -> Any:
        return self._note(f"after {result}")

    def error(self, job: Job, error: BaseException) -> Any:
        return self._note(f"error {type(error).__name__}")


async def returns(job: Job) -> str:
    return "value"


async def raises(job: Job) -> str:
    raise ValueError("no")


def chain(notes: list[str], *, asynchronous: bool = False) -> list[Noting]:
    return [Noting(name, notes, asynchronous=asynchronous) for name in ("outer", "inner")]


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_before_runs_in_order_and_after_in_reverse(asynchronous: bool) -> None:
    notes: list[str] = []
    assert await around(chain(notes, asynchronous=asynchronous), returns)(JOB) == "value"
    assert notes == ["before outer", "before inner", "after value inner", "after value outer"]


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_error_runs_in_reverse_and_the_error_goes_on(asynchronous: bool) -> None:
    notes: list[str] = []
    with pytest.raises(ValueError, match="no"):
        await around(chain(notes, asynchronous=asynchronous), raises)(JOB)
    assert notes == ["before outer", "before inner", "error ValueError inner", "error ValueError outer"]


async def test_what_before_raises_is_as_if_the_handler_had_raised_it_and_those_within_are_not_called() -> None:
    notes: list[str] = []
    broken = Noting("middle", notes, broken="before")
    with pytest.raises(KeyError, match="before of middle"):
        await around([Noting("outer", notes), broken, Noting("inner", notes)], returns)(JOB)
    assert notes == ["before outer", "before middle", "error KeyError middle", "error KeyError outer"]


async def test_a_cancelled_handler_is_an_error_to_its_middleware() -> None:
    notes: list[str] = []
    started = asyncio.Event()

    async def wait(job: Job) -> None:
        started.set()
        await asyncio.Event().wait()

    run = around([Noting("only", notes)], wait)

    async def task() -> None:
        await run(JOB)

    running = asyncio.create_task(task())
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert notes == ["before only", "error CancelledError only"]


async def test_what_after_raises_fails_the_attempt() -> None:
    with pytest.raises(KeyError, match="after of only"):
        await around([Noting("only", [], broken="after")], returns)(JOB)


async def test_context_variables_set_before_are_seen_by_the_handler() -> None:
    trace: contextvars.ContextVar[str] = contextvars.ContextVar("trace")

    class Tracing:
        async def before(self, job: Job) -> None:
            trace.set(f"trace of {job.id}")

    async def handle(job: Job) -> str:
        return trace.get()

    assert await around([Tracing()], handle)(JOB) == "trace of id"


async def test_hooks_that_are_missing_do_nothing() -> None:
    class OnlyAfter:
        seen: Any = None

        def after(self, job: Job, result: Any) -> None:
            self.seen = result

    one = OnlyAfter()
    assert await around([one], returns)(JOB) == "value"
    assert one.seen == "value"
    with pytest.raises(ValueError, match="no"):
        await around([one], raises)(JOB)


def test_no_middleware_leaves_the_handler_as_it_is() -> None:
    assert around([], returns) is returns


def test_headers_are_what_each_middleware_adds_in_order() -> None:
    class Adding:
        def __init__(self, **found: str) -> None:
            self.found = found

        def adding(self, headers: dict[str, str]) -> None:
            headers.update(self.found)

    assert headers([Adding(a="1", b="1"), Noting("x", []), Adding(b="2")]) == {"a": "1", "b": "2"}
    assert headers([Noting("x", [])]) is None
    assert headers([]) is None


@pytest.mark.parametrize("bad", [None, "text", 5, Noting("x", []), [object()], [Noting("x", []), "text"], {"a": 1}])
def test_what_is_no_sequence_of_middleware_is_refused(bad: object) -> None:
    with pytest.raises(ConfigurationError, match="middleware: expected"):
        checked(bad)


def test_middleware_may_be_any_sequence() -> None:
    one = Noting("x", [])
    assert checked([one]) == checked((one,)) == (one,)
    assert checked(()) == ()
