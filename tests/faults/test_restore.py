"""A server that is restored from an old snapshot: every job of the snapshot runs, in order, and no key is damaged."""

from __future__ import annotations

import asyncio
import shutil

from groupmq import Every, Queue, Worker
from tests.faults.conftest import StartServer
from tests.support.servers import prefer
from tests.support.waiting import eventually
from tests.support.workers import Recorder


async def test_a_queue_goes_on_from_an_old_snapshot(start_server: StartServer) -> None:
    server = start_server(prefer("redis"), config={"dbfilename": "dump.rdb"})
    before = Recorder()
    before.gate = asyncio.Event()
    async with Queue("orders", server.url, job_timeout=1) as queue:
        await queue.add_many([{"data": n, "group_id": f"g{n % 3}"} for n in range(9)])
        await queue.add("later", group_id="g0", delay=0.5)
        await queue.add("tick", repeat=Every(0.5, key="t"))
        worker = await Worker(queue, before, concurrency=3).start()
        await eventually(lambda: len(before.started) == 3, "one job of each group runs")
        with server.client() as client:
            client.save()
        shutil.copy(server.dir / "dump.rdb", server.dir / "backup.rdb")
        before.gate.set()  # outcomes from here on are not in the snapshot
        await eventually(lambda: len(before.ended) >= 9, "the jobs have run")
        await worker.close()
        await asyncio.to_thread(server.kill)
        shutil.copy(server.dir / "backup.rdb", server.dir / "dump.rdb")
        await asyncio.to_thread(server.restart)

        assert (await queue.repair()).clean
        after = Recorder()
        async with Worker(queue, after, concurrency=3, stalled_interval=0.1):
            await eventually(
                lambda: {*range(9), "later", "tick"} <= set(after.ended), "all jobs of the snapshot run again", 20
            )
        assert after.most_in_group == 1
        for group in range(3):
            assert [data for data in after.ended if data in range(9) and data % 3 == group] == [
                group,
                group + 3,
                group + 6,
            ]
        await queue.remove_repeating_job(None, "t")
