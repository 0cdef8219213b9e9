"""Local events of a worker: any number of listeners, and no error of one affects the others."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from groupmq.core.errors import ConfigurationError
from groupmq.runtime.emitter import Emitter
from tests.support.hostile import Unprintable


class Log:
    """A logger that remembers its errors, as text."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def debug(self, msg: str, *args: Any) -> None: ...
    def info(self, msg: str, *args: Any) -> None: ...
    def warning(self, msg: str, *args: Any) -> None: ...

    def error(self, msg: str, *args: Any) -> None:
        self.errors.append(msg % args)


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def emitter(log: Log) -> Emitter:
    return Emitter(("started", "ended"), log)


async def listeners_ended(emitter: Emitter) -> None:
    while emitter._tasks:
        await asyncio.wait(emitter._tasks)


def test_every_listener_is_called_in_turn_with_the_arguments(emitter: Emitter) -> None:
    seen: list[Any] = []
    emitter.on("started", lambda *args: seen.append(("first", args)))
    emitter.on("started", lambda *args: seen.append(("second", args)))
    emitter.emit("started", 1, "x")
    emitter.emit("ended")
    assert seen == [("first", (1, "x")), ("second", (1, "x"))]


def test_on_returns_the_listener_so_that_off_can_name_it(emitter: Emitter) -> None:
    seen: list[int] = []
    listener = emitter.on("started", seen.append)
    assert emitter.off("started", listener) is True
    assert emitter.off("started", listener) is False
    emitter.emit("started", 1)
    assert seen == []


def test_all_listeners_of_one_event_or_of_all_can_be_removed(emitter: Emitter) -> None:
    seen: list[str] = []
    for name in ("started", "ended"):
        emitter.on(name, lambda name=name: seen.append(name))
    emitter.remove_all("started")
    emitter.emit("started")
    emitter.emit("ended")
    assert seen == ["ended"]
    emitter.remove_all()
    emitter.emit("ended")
    assert seen == ["ended"]


def test_a_listener_that_raises_is_logged_and_the_others_are_still_called(emitter: Emitter, log: Log) -> None:
    seen: list[int] = []

    def bad(_value: int) -> None:
        raise ValueError("boom")

    emitter.on("started", bad)
    emitter.on("started", seen.append)
    emitter.emit("started", 1)
    assert seen == [1]
    assert log.errors == ["a listener of 'started' raised ValueError: boom; nothing else is affected"]


@pytest.mark.parametrize("error", [Unprintable(), SystemExit(1), KeyboardInterrupt()])
def test_whatever_a_listener_raises_harms_nothing(emitter: Emitter, log: Log, error: BaseException) -> None:
    def bad() -> None:
        raise error

    emitter.on("started", bad)
    emitter.emit("started")
    assert len(log.errors) == 1
    assert type(error).__name__ in log.errors[0]


async def test_an_async_listener_runs_beside_and_is_not_waited_for(emitter: Emitter) -> None:
    gate, seen = asyncio.Event(), []

    async def slow(value: int) -> None:
        await gate.wait()
        seen.append(value)

    emitter.on("started", slow)
    emitter.emit("started", 1)
    assert seen == []
    gate.set()
    await listeners_ended(emitter)
    assert seen == [1]


async def test_an_async_listener_that_raises_is_logged(emitter: Emitter, log: Log) -> None:
    async def bad() -> None:
        raise ValueError("boom")

    emitter.on("started", bad)
    emitter.emit("started")
    await listeners_ended(emitter)
    assert log.errors == ["a listener of 'started' raised ValueError: boom; nothing else is affected"]


def test_a_listener_may_remove_itself_while_it_is_called(emitter: Emitter) -> None:
    seen: list[str] = []

    def once() -> None:
        seen.append("once")
        emitter.off("started", once)

    emitter.on("started", once)
    emitter.on("started", lambda: seen.append("always"))
    emitter.emit("started")
    emitter.emit("started")
    assert seen == ["once", "always", "always"]


@pytest.mark.parametrize("listener", [None, "print", 5])
def test_a_listener_must_be_callable(emitter: Emitter, listener: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^listener: expected a callable, got "):
        emitter.on("started", listener)


def test_an_unknown_event_is_refused_and_the_known_ones_are_listed(emitter: Emitter) -> None:
    for use in (
        lambda: emitter.on("begun", print),
        lambda: emitter.off("begun", print),
        lambda: emitter.remove_all("begun"),
    ):
        with pytest.raises(ConfigurationError, match=r"^event: expected one of ended, started, got 'begun'$"):
            use()
