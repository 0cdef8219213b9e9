"""The common part of the tests of a killed repartition, on one server and on a cluster."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable

import pytest

from groupmq import ConfigurationError, Queue
from tests.partitions.contents import GROUPS, KEPT, fill, run_all, snapshot
from tests.support import repartitioning

Open = Callable[[], Queue]


def points(answers: int, n: int) -> list[int]:
    """The numbers of answers after which to kill: at the first steps, at the last ones, and in between."""
    return sorted({1, 3, *(1 + i * (answers - 2) // (n - 3) for i in range(1, n - 3)), answers - 2, answers - 1})


async def kill_and_go_on(url: str, name: str, n: int) -> Queue:
    """Kill a repartition at `n` points, start it again each time and compare the contents. Returns the queue."""
    async with Queue(name, url, partitions=2, **KEPT) as queue:
        await fill(queue)
        await queue.pause()
        before = await snapshot(queue)
    partitions = 2
    stages = set()

    async def check(to: int) -> None:
        async with Queue(name, url, **KEPT) as fresh:
            assert (await fresh.get_settings()).partitions == to
            assert await snapshot(fresh) == before
            assert (await fresh.repair()).clean

    code, said = repartitioning.run(url, name, 3)
    assert code == 0, said
    await check(3)
    answers, partitions = json.loads(said.splitlines()[-1])["answers"], 3
    for at in points(answers, n):
        to = 5 - partitions
        code, said = repartitioning.run(url, name, to, kill=at)
        assert code == -signal.SIGKILL, f"after {at} of {answers} answers: {code}, {said}"
        stages.add(await stage_of(url, name))
        code, said = repartitioning.run(url, name, to)
        assert code == 0, f"after it was killed at {at} of {answers} answers: {said}"
        await check(to)
        partitions = to
    assert stages == {"open", "copy", "clean"}, "it was not killed in every stage"
    return Queue(name, url, **KEPT)


async def stage_of(url: str, name: str) -> str:
    """The stage in which the repartition was killed. Until the copy is complete, adds are refused."""
    async with Queue(name, url, **KEPT) as queue:
        raw = await queue._connection.command("HGET", f"groupmq:{{{name}}}:meta", "moving", key=f"{{{name}}}")
        if raw is None:
            return "open"
        stage = str(raw.decode().split()[-1])
        if stage == "copy":
            with pytest.raises(ConfigurationError, match="is being repartitioned"):
                await queue.add(1)
        return stage


async def check_order(queue: Queue) -> None:
    """Check that waiting jobs run in the order of their groups, except those of paused, blocked or held groups."""
    before = await snapshot(queue)
    ran = await run_all(queue)
    for g in GROUPS:
        waiting = [i for i in before["lines"][g][2] if i in before["waiting"]]
        held = before["lines"][g][1] in ("paused", "blocked", "backoff")
        assert [job_id for _, job_id in ran.get(g, [])] == ([] if held else waiting)
    assert sum(map(len, ran.values())) > 30
