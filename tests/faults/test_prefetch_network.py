"""Lost answers that bring a row: when the request is resent, the answer is the same."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from itertools import count

import pytest
import redis

from groupmq import Queue, Worker, WrongState
from groupmq.protocol.keys import Keys
from groupmq.sync import Queue as SyncQueue
from tests.faults.conftest import StartServer
from tests.support.proxy import Proxy
from tests.support.rows import used_to_short_handlers
from tests.support.servers import prefer
from tests.support.waiting import eventually, wait_until
from tests.support.workers import Listener, Recorder


async def test_answers_that_are_lost_bring_no_row_twice(start_server: StartServer) -> None:
    server = start_server(prefer("redis"))
    handler, requests = Recorder(), count()
    async with Queue("orders", server.url, job_timeout=15) as direct:
        added = await direct.add_many([{"data": [g, i], "group_id": f"g{g}"} for i in range(200) for g in range(5)])
        with Proxy(server.port, cut=lambda request: b"FCALL" in request and next(requests) % 4 == 3) as proxy:
            async with Queue("orders", proxy.url, job_timeout=15) as queue:
                worker = used_to_short_handlers(Worker(queue, handler, concurrency=3, prefetch=20))
                heard = Listener(worker, "lease-lost", "stalled", "retrying", "failed")
                await worker.start()
                assert await direct.wait_for_empty(30)
                proxy.cut = lambda request: False
                await worker.close()
            assert proxy.cuts >= 4
        assert worker.get_worker_metrics().completed == len(added)
    assert heard.heard == []
    assert handler.most_in_group == 1
    for g in range(5):
        assert [i for group, i in handler.started if group == g] == list(range(200))


async def test_a_job_removed_while_the_answer_with_it_is_lost_leaves_the_others_one_at_a_time(
    start_server: StartServer,
) -> None:
    server = start_server(prefer("valkey"))
    handler = Recorder(seconds=0.03)
    removed: list[bool] = []
    with SyncQueue("orders", server.url, job_timeout=15) as operator, Proxy(server.port) as proxy:
        operator.add_many([{"data": i, "group_id": "g", "job_id": f"job-{i}"} for i in range(4)])

        # In a thread, since the operator waits for the worker, which does not know yet that it holds the job.
        remover = threading.Thread(target=lambda: removed.append(operator.remove("job-1")))

        def remove_one(reply: bytes) -> bool:
            """The reply that brings the row is lost. Before the request is resent, a job in its middle is removed."""
            if remover.ident is not None or b"job-1" not in reply:
                return False
            remover.start()
            return True

        proxy.drop = remove_one
        async with Queue("orders", proxy.url, job_timeout=15) as queue:
            worker = used_to_short_handlers(Worker(queue, handler, concurrency=4))
            async with worker:
                await eventually(lambda: len(handler.ended) == 3, "the others ran")
                remover.join(10)
    assert removed == [True]
    assert handler.most_in_group == 1
    assert handler.started == [0, 2, 3]


@pytest.mark.parametrize("end", ["remove", "fail", "cancel", "pause"])
async def test_a_job_whose_answer_is_still_on_its_way_does_not_start_after_an_operator_has_ended_it(
    start_server: StartServer, end: str
) -> None:
    """The answer that grants the job is held back until the operator has asked for the job, and is then lost. The lease
    is long, so only the worker can tell whether the job has begun. It may begin before the operator gets an answer."""
    server = start_server(prefer("valkey"))
    handler = Recorder()
    with SyncQueue("orders", server.url, job_timeout=600) as operator, Proxy(server.port) as proxy:
        operator.add_many([{"data": i, "group_id": "g", "job_id": f"job-{i}"} for i in range(2)])
        ways: dict[str, Callable[[], object]] = {
            "remove": lambda: operator.remove("job-0"),
            "fail": lambda: operator.fail("job-0", "by hand"),
            "cancel": lambda: operator.cancel("job-0"),
            "pause": operator.pause,
        }
        started_before: list[list[int]] = []

        def act() -> None:
            with contextlib.suppress(WrongState):  # it began, and has completed
                ways[end]()
            started_before.append(list(handler.started))

        # In a thread, since the operator waits for the worker, which does not know yet that it holds the job.
        acting = threading.Thread(target=act)

        def end_first(reply: bytes) -> bool:
            if acting.ident is not None or b"job-0" not in reply:
                return False
            acting.start()
            with redis.Redis.from_url(server.url) as client:
                asked = Keys("groupmq", "orders").fixed("interrupts")
                wait_until(lambda: client.exists(asked), "the operator has asked for the job")
            return True

        proxy.drop = end_first
        async with Queue("orders", proxy.url) as queue, Worker(queue, handler, prefetch=0):
            await eventually(lambda: bool(started_before), "the operator got an answer")
            if end == "pause":
                assert handler.started == started_before[0]
                operator.resume()
                await eventually(lambda: handler.ended == [0, 1], "both have run after the pause")
            else:
                await eventually(lambda: 1 in handler.ended, "the other job ran")
                assert (0 in handler.started) == (0 in started_before[0])
