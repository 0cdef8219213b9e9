"""Adds of one event-loop tick are sent in one call, and never affect each other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from groupmq.client.queue.joining import Joiner
from groupmq.core.drafts import Draft, draft
from groupmq.core.errors import ConnectionLost, GroupFull
from groupmq.core.queue_options import QueueOptions
from groupmq.protocol.commands import CHUNK
from tests.support.waiting import eventually

OPTIONS = QueueOptions(name="q", max_payload=64 * 1024 * 1024)


class Sender:
    """Stands for the queue's sending. It answers while `gate` is set."""

    def __init__(self) -> None:
        self.sent: list[list[str]] = []
        self.fail: BaseException | None = None
        self.refuse: dict[str, Exception] = {}
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, drafts: Sequence[Draft]) -> list[Any]:
        self.sent.append([d.id for d in drafts])
        error = self.fail
        await self.gate.wait()
        if error is not None:
            raise error
        return [self.refuse.get(d.id, f"job {d.id}") for d in drafts]


def joiner(send: Sender) -> Any:
    """A joiner, typed `Any`, since the sender answers with strings instead of jobs."""
    return Joiner(send, lambda one: len(one.body))


def named(job_id: object, data: Any = None) -> Draft:
    return draft(OPTIONS, data, job_id=str(job_id))


async def test_adds_of_one_tick_are_one_send_in_their_order() -> None:
    send = Sender()
    joins = joiner(send)
    jobs = await asyncio.gather(*(joins.add(named(i)) for i in range(50)))
    assert send.sent == [[str(i) for i in range(50)]]
    assert jobs == [f"job {i}" for i in range(50)]


async def test_a_lone_add_leaves_without_waiting_for_company() -> None:
    send = Sender()
    assert await joiner(send).add(named("x")) == "job x"
    assert send.sent == [["x"]]


async def test_adds_of_later_ticks_do_not_wait_for_a_send_under_way() -> None:
    send = Sender()
    joins = joiner(send)
    send.gate.clear()
    first = asyncio.ensure_future(joins.add(named("a")))
    await eventually(lambda: send.sent, "the first send")
    second = asyncio.ensure_future(joins.add(named("b")))
    await eventually(lambda: len(send.sent) == 2, "the second send")
    assert send.sent == [["a"], ["b"]]
    send.gate.set()
    assert (await first, await second) == ("job a", "job b")


async def test_more_than_a_chunk_is_sent_in_chunks() -> None:
    send = Sender()
    joins = joiner(send)
    await asyncio.gather(*(joins.add(named(i)) for i in range(2 * CHUNK + 1)))
    assert [len(part) for part in send.sent] == [CHUNK, CHUNK, 1]
    assert [job_id for part in send.sent for job_id in part] == [str(i) for i in range(2 * CHUNK + 1)]


async def test_large_adds_are_not_joined_into_more_than_a_server_takes() -> None:
    send = Sender()
    joins = joiner(send)
    large = "x" * (5 * 1024 * 1024)
    await asyncio.gather(*(joins.add(named(i, large)) for i in range(8)))
    assert [job_id for part in send.sent for job_id in part] == [str(i) for i in range(8)]
    assert all(1 <= len(part) <= 3 for part in send.sent)


async def test_a_failing_send_fails_its_own_adds_only() -> None:
    send = Sender()
    joins = joiner(send)
    send.fail = ConnectionLost("gone")
    failed = await asyncio.gather(joins.add(named("a")), joins.add(named("b")), return_exceptions=True)
    assert [type(error) for error in failed] == [ConnectionLost, ConnectionLost]
    send.fail = None
    assert await joins.add(named("c")) == "job c"


async def test_one_refused_add_fails_its_own_caller_and_no_neighbour() -> None:
    send = Sender()
    send.refuse = {"b": GroupFull("g", 3)}
    joins = joiner(send)
    a, b, c = await asyncio.gather(*(joins.add(named(name)) for name in "abc"), return_exceptions=True)
    assert (a, c) == ("job a", "job c")
    assert b is send.refuse["b"]
    assert send.sent == [["a", "b", "c"]]


async def test_a_refused_add_whose_caller_is_gone_harms_nobody() -> None:
    send = Sender()
    send.refuse = {"a": GroupFull("g", 3)}
    send.gate.clear()
    joins = joiner(send)
    dropped, kept = asyncio.ensure_future(joins.add(named("a"))), asyncio.ensure_future(joins.add(named("b")))
    await eventually(lambda: send.sent, "the first send")
    dropped.cancel()
    send.gate.set()
    assert await kept == "job b"


async def test_an_add_that_is_cancelled_before_it_left_is_not_sent() -> None:
    send = Sender()
    joins = joiner(send)
    dropped, kept = asyncio.ensure_future(joins.add(named("a"))), asyncio.ensure_future(joins.add(named("b")))
    # Runs after both were joined and before they leave.
    asyncio.get_running_loop().call_soon(dropped.cancel)
    assert await kept == "job b"
    assert dropped.cancelled()
    assert send.sent == [["b"]]


async def test_a_cancelled_add_does_not_take_its_neighbours_along() -> None:
    send = Sender()
    joins = joiner(send)
    send.gate.clear()
    dropped, kept = asyncio.ensure_future(joins.add(named("a"))), asyncio.ensure_future(joins.add(named("b")))
    await eventually(lambda: send.sent, "the first send")
    dropped.cancel()
    send.gate.set()
    assert await kept == "job b"
    with pytest.raises(asyncio.CancelledError):
        await dropped


async def test_draining_waits_for_everything_that_was_added() -> None:
    send = Sender()
    joins = joiner(send)
    send.gate.clear()
    adds = [asyncio.ensure_future(joins.add(named(i))) for i in range(3)]
    await asyncio.sleep(0)
    draining = asyncio.ensure_future(joins.drain())
    await eventually(lambda: send.sent, "the first send")
    assert not draining.done()
    send.gate.set()
    await draining
    assert await asyncio.gather(*adds) == ["job 0", "job 1", "job 2"]


async def test_draining_an_idle_batcher_returns_at_once() -> None:
    await joiner(Sender()).drain()
