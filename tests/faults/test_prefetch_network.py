"""Lost answers that bring a row: when the request is resent, the answer is the same."""

from __future__ import annotations

import threading
from itertools import count

import pytest

from groupmq import Queue, Worker
from groupmq.sync import Queue as SyncQueue
from tests.faults.conftest import StartServer
from tests.integration.rows import used_to_short_handlers
from tests.support.proxy import Proxy
from tests.support.servers import prefer
from tests.support.waiting import eventually
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


async def test_one_that_is_removed_while_the_answer_that_brought_it_is_lost_leaves_the_others_one_at_a_time(
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


@pytest.mark.parametrize("end", ["remove", "fail"])
async def test_a_group_goes_on_after_a_run_that_an_operator_ended_before_its_worker_had_heard_of_it(
    start_server: StartServer, end: str
) -> None:
    """The lease is long, so only the worker can report that this run never started."""
    server = start_server(prefer("valkey"))
    handler = Recorder()
    with SyncQueue("orders", server.url, job_timeout=600) as operator, Proxy(server.port) as proxy:
        operator.add_many([{"data": i, "group_id": "g", "job_id": f"job-{i}"} for i in range(2)])
        done: list[bool] = []

        def end_first(reply: bytes) -> bool:
            if done or b"job-0" not in reply:
                return False
            done.append(operator.remove("job-0") if end == "remove" else operator.fail("job-0", "by hand"))
            return True

        proxy.drop = end_first
        async with Queue("orders", proxy.url) as queue, Worker(queue, handler, prefetch=0):
            await eventually(lambda: handler.ended == [1], "the other job ran")
    assert done == [True]
    assert handler.started == [1]
