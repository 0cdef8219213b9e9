"""A cluster whose network is split: the owner of a queue is in the minority, but clients still reach it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from groupmq import Queue
from groupmq.errors import ConnectionLost, ServerRefused
from tests.support.clusters import run
from tests.support.load import all_done, in_order, working
from tests.support.servers import Kind, Server, available_kinds, prefer
from tests.support.splitting import SplitCluster
from tests.support.waiting import wait_until


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[SplitCluster]:
    kind: Kind = getattr(request, "param", prefer("valkey"))
    with SplitCluster(kind, primaries=3, replicas=1) as cluster:
        yield cluster


each_kind = pytest.mark.parametrize("cluster", available_kinds(), indirect=True)


def is_down(node: Server) -> bool:
    return b"cluster_state:fail" in run(node, "CLUSTER", "INFO")


@each_kind
async def test_all_go_to_the_primary_that_the_majority_has_chosen(cluster: SplitCluster) -> None:
    """Jobs that only the minority acknowledged are lost; all others run, in order."""
    async with working(cluster.url, "orders", job_timeout=5) as (load, handler):
        await load.goes_on(100)
        old = await asyncio.to_thread(cluster.owner, "orders")
        await asyncio.to_thread(cluster.replicated, old)
        safe = tuple(load.added[:100])
        await asyncio.to_thread(cluster.split, [old])
        new = await asyncio.to_thread(cluster.wait_for_choice, "orders", [old])
        await asyncio.to_thread(wait_until, lambda: is_down(old), "the minority refuses", 30)
        between = len(load.added)
        await load.goes_on(200)
        await asyncio.to_thread(cluster.heal)
        await asyncio.to_thread(wait_until, lambda: cluster.is_linked(old), "the old one follows the new one", 60)
        assert cluster.owner("orders") is new
        await load.goes_on(100)
        after = load.added[between + 1 :]  # the one before may have been acknowledged late by the minority
        await all_done(load, handler, (*safe, *after))
        known = {*safe, *after}
        assert in_order(n for n in handler.started if n in known) == {}
        assert set(handler.started) <= set(load.added)


async def test_the_minority_refuses_what_it_cannot_keep(cluster: SplitCluster) -> None:
    """Without a reachable owner a call is refused, and it works again when the network does."""
    old = cluster.owner("orders")
    rest = [cluster.replica_of(old)]
    async with Queue("orders", cluster.url) as queue:
        await queue.add("before")
        await asyncio.to_thread(cluster.split, [old, *rest])
        await asyncio.to_thread(wait_until, lambda: is_down(old), "the minority refuses", 30)
        impatient = Queue.attach("orders", cluster.url, patience=0.0)
        with pytest.raises((ServerRefused, ConnectionLost)):
            await impatient.get_waiting_count()
        await impatient.close()
        late = asyncio.ensure_future(queue.add("after"))
        await asyncio.to_thread(cluster.heal)
        await late
        assert await queue.get_waiting_count() == 2
