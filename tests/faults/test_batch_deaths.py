"""Worker processes that die in the middle of a batch."""

from __future__ import annotations

from groupmq import Queue
from tests.conftest import MakeQueue
from tests.support.fleet import Fleet
from tests.support.rows import attempts_made
from tests.support.servers import Server

LEASE = 1.0


async def test_a_batch_of_a_killed_worker_runs_again_one_by_one_in_order(server: Server, make_queue: MakeQueue) -> None:
    """Each job is charged an attempt, since any of them may have killed the worker, and none is lost."""
    queue: Queue = make_queue(job_timeout=LEASE)
    jobs = await queue.add_many([{"data": {"n": n, "seconds": 60}, "group_id": "g"} for n in range(4)])
    late = await queue.add({"n": 4, "seconds": 0}, group_id="g")
    with Fleet(server.url, queue.name, worker={"batch": 4}, job_timeout=LEASE) as fleet:
        [first] = fleet.start(handler="batch")
        fleet.wait_for(lambda: len(fleet.lines("start")) == 4, "the batch runs")
        fleet.kill(first)
        fleet.start(handler="batch")
        assert await queue.wait_for_empty(20)
        fleet.close()
        starts = [(line["n"], line["attempt"], len(line["batch"])) for line in fleet.lines("start")[4:]]
    assert starts == [(0, 2, 1), (1, 2, 1), (2, 2, 1), (3, 2, 1), (4, 1, 1)]
    assert await attempts_made([*jobs, late]) == [2, 2, 2, 2, 1]
