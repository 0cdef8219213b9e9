"""Tabs that ask at the same time share one read of the queue."""

from __future__ import annotations

import asyncio

import pytest

from groupmq.dashboard.live.broadcast import Broadcast, Message
from groupmq.dashboard.live.notify_rate import NotifyRate
from groupmq.dashboard.live.shared import SharedAnswers


class Looks:
    def __init__(self) -> None:
        self.made = 0

    async def look(self) -> int:
        self.made += 1
        await asyncio.sleep(0)
        return self.made


async def test_concurrent_requests_share_one_read() -> None:
    answers, looks = SharedAnswers(good_for=60), Looks()
    found = await asyncio.gather(*(answers.get("a", looks.look) for _ in range(10)))
    assert found == [1] * 10
    assert await answers.get("a", looks.look) == 1
    assert await answers.get("b", looks.look) == 2


async def test_a_fresh_look_is_new_and_after_an_action_all_are() -> None:
    answers, looks = SharedAnswers(good_for=60), Looks()
    assert await answers.get("a", looks.look) == 1
    assert await answers.get("a", looks.look, fresh=True) == 2
    answers.forget()
    assert await answers.get("a", looks.look) == 3


async def test_an_answer_gets_old() -> None:
    answers, looks = SharedAnswers(good_for=0.0), Looks()
    assert [await answers.get("a", looks.look) for _ in range(2)] == [1, 2]


async def test_a_look_that_fails_fails_for_all_who_waited_and_is_tried_again() -> None:
    answers = SharedAnswers(good_for=60)

    async def broken() -> int:
        await asyncio.sleep(0)
        raise LookupError("no")

    found = await asyncio.gather(*(answers.get("a", broken) for _ in range(3)), return_exceptions=True)
    assert [type(one) for one in found] == [LookupError] * 3
    assert await answers.get("a", Looks().look) == 1


async def test_one_who_gives_up_does_not_take_the_look_from_the_others() -> None:
    answers, begun, go = SharedAnswers(good_for=60), asyncio.Event(), asyncio.Event()

    async def slow() -> int:
        begun.set()
        await go.wait()
        return 1

    first = asyncio.ensure_future(answers.get("a", slow))
    await begun.wait()
    second = asyncio.ensure_future(answers.get("a", slow))
    await asyncio.sleep(0)
    first.cancel()
    go.set()
    assert await second == 1
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_a_tab_that_does_not_keep_up_gets_missed() -> None:
    broadcast = Broadcast()
    slow = broadcast.add(events=True)
    for n in range(500):
        broadcast.send(Message.of("changed", {"n": n}))
    found = await slow.take(1)
    assert found[0].name == "missed"
    assert found[-1].raw == Message.of("changed", {"n": 499}).raw


async def test_only_tabs_that_asked_for_events_get_them() -> None:
    broadcast = Broadcast()
    plain, tail = broadcast.add(events=False), broadcast.add(events=True)
    broadcast.send(Message.of("events", {}))
    broadcast.send(Message.of("changed", {}))
    assert [message.name for message in await plain.take(1)] == ["changed"]
    assert [message.name for message in await tail.take(1)] == ["events", "changed"]


def test_no_text_can_end_a_message_early() -> None:
    message = Message.of("snapshot", {"text": "a\n\ndata: evil\r\n\u2028"}, "1-0/1/0")
    assert message.raw.count(b"\n") == 4
    assert message.raw.endswith(b"\n\n")


async def test_one_who_asks_after_a_change_does_not_get_a_look_that_began_before_it() -> None:
    answers, begun, go = SharedAnswers(good_for=60), asyncio.Event(), asyncio.Event()

    async def before() -> str:
        begun.set()
        await go.wait()
        return "before"

    async def after() -> str:
        return "after"

    early = asyncio.ensure_future(answers.get("a", before))
    await begun.wait()
    answers.forget()
    assert await answers.get("a", after) == "after"
    go.set()
    assert await early == "before"
    assert await answers.get("a", before) == "after"


def test_tabs_are_notified_less_often_when_looking_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("groupmq.dashboard.live.notify_rate.time.monotonic", lambda: now)
    pace = NotifyRate()

    def due_after(spent: float, seconds: float) -> bool:
        nonlocal now
        pace.notified()
        pace.spent(spent)
        now += seconds
        return pace.is_due

    assert due_after(spent=0, seconds=0)
    assert not due_after(spent=0.06, seconds=1)
    assert due_after(spent=0.06, seconds=2.1)
    assert not due_after(spent=60, seconds=9)
    assert due_after(spent=60, seconds=10)
