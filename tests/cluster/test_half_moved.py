"""A slot that is stuck half-way through a move: calls are refused as a whole, without any partial write.

A function declares one key and derives the others, so the server cannot check in advance that all of them are there. It
refuses the call when the function accesses a missing one, and every function reads all keys it writes before it writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import redis

from groupmq import Queue, Throttle
from groupmq.core.queue_options import QueueOptions
from groupmq.errors import ServerRefused
from groupmq.protocol import commands
from groupmq.protocol.commands import Policy
from tests.support import keyspace
from tests.support.clusters import Cluster, Move
from tests.support.servers import available_kinds

LEASE_MS = 60_000
POLICY = Policy(3, -1, QueueOptions("-").keep)


@pytest.fixture(scope="module", params=available_kinds())
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with Cluster(request.param) as cluster:
        yield cluster


async def fill(queue: Queue) -> list[tuple[str, int]]:
    """Fill many keys of the queue. Returns the leases that a worker holds."""
    await queue.add_many({"data": n, "group_id": f"g{n % 4}", "job_id": f"job-{n}"} for n in range(20))
    await queue.add("later", delay=600, job_id="delayed")
    await queue.add("once", job_id="deduped", dedupe=Throttle("k", 600))
    await queue.pause_group("g3")
    await queue._call(commands.beat("worker", "{}", LEASE_MS, []))
    leases = []
    for request in range(1, 4):
        taken = await queue._call(take("requester", request))
        leases += [(job.id, job.fence) for job in taken.jobs]
    assert len(leases) == 3
    job_id, fence = leases.pop()
    await queue._call(take("requester", 4, [commands.completed(job_id, fence, b"1")]))
    return leases


def take(requester: str, request: int, outcomes: Any = ()) -> Any:
    return commands.advance(
        worker="worker",
        requester=requester,
        request=request,
        outcomes=outcomes,
        take=0 if outcomes else 1,
        lease_ms=LEASE_MS,
        policy=POLICY,
    )


def calls_of(queue: Queue, leases: list[tuple[str, int]], n: int) -> dict[str, Callable[[], Awaitable[Any]]]:
    """One call of each kind that writes; `n` makes new names."""
    (first, fence), *_ = leases
    return {
        "add": lambda: queue.add("new", group_id="g0", job_id=f"add-{n}"),
        "add to a new group": lambda: queue.add("new", group_id=f"new-{n}", job_id=f"new-{n}"),
        "add for later": lambda: queue.add("new", delay=60, job_id=f"later-{n}"),
        "take": lambda: queue._call(take(f"requester-{n}", 1)),
        "complete": lambda: queue._call(take(f"requester-{n}", 2, [commands.completed(first, fence, b"1")])),
        "beat": lambda: queue._call(commands.beat("worker", "{}", LEASE_MS, leases)),
        "remove": lambda: queue.remove(f"job-{19 - n}"),
        "promote": lambda: queue.promote("delayed"),
        "resume a group": lambda: queue.resume_group("g3"),
        "due": queue.promote_delayed_jobs,
    }


def dump(move: Move) -> dict[bytes, tuple[str, bytes]]:
    """Everything stored in the slot, with the node that has it."""
    found: dict[bytes, tuple[str, bytes]] = {}
    for place, node, keys in (("source", move.source, move.remaining()), ("target", move.target, move.arrived())):
        make: Any = redis.Connection
        connection = make(port=node.port, protocol=2)
        connection.connect()
        for key in keys:
            assert key not in found, f"{key!r} is at both nodes"
            connection.send_packed_command(connection.pack_commands((("ASKING",), ("DUMP", key))))
            connection.read_response()
            found[key] = place, connection.read_response(disable_decoding=True)
        connection.disconnect()
    return found


async def refusal_of(call: Callable[[], Awaitable[Any]]) -> ServerRefused | None:
    try:
        await call()
    except ServerRefused as error:
        return error
    return None


@pytest.mark.parametrize("order", ["first to last", "last to first"])
async def test_a_refused_call_has_written_nothing_and_all_go_on_when_the_move_ends(
    cluster: Cluster, order: str
) -> None:
    name = f"orders-{order[:5]}"
    target = await asyncio.to_thread(lambda: cluster.other_than(cluster.owner(name)))
    queue = Queue(name, cluster.url)
    leases = await fill(queue)
    queue._connection.patience = 0.0
    refused, served = 0, 0
    with cluster.moving(name, target) as move:
        while keys := move.remaining():
            chosen = keys if order == "first to last" else keys[::-1]
            move.keys(chosen[:3])
            for what, call in calls_of(queue, leases, refused + served).items():
                before = dump(move)
                error = await refusal_of(call)
                if error is None:
                    served += 1
                    continue
                refused += 1
                assert (error.kind, "is moving the queue's slot" in str(error)) == ("TRYAGAIN", True), what
                assert dump(move) == before, f"{what} was refused, but has written"
        assert refused > served
    queue._connection.patience = 10.0
    with redis.Redis(port=target.port) as client:
        keyspace.check(client)
    for call in calls_of(queue, leases, 0).values():
        await call()
    with redis.Redis(port=target.port) as client:
        keyspace.check(client)
    await queue.obliterate()
    await queue.close()


async def test_a_move_that_has_begun_is_waited_for(cluster: Cluster) -> None:
    """Even before the first key is moved, calls that access a key that does not exist are refused."""
    target = await asyncio.to_thread(lambda: cluster.other_than(cluster.owner("begun")))
    async with Queue("begun", cluster.url) as queue:
        await queue.add("before")
        with cluster.moving("begun", target):
            late = asyncio.ensure_future(queue.add("after", group_id="new"))
            with pytest.raises(ServerRefused, match="is moving the queue's slot"):
                await queue._connection.call(commands.beat("w", "{}", 1000, []), patience=0.0)
            assert not late.done()
        await late
        assert await queue.get_waiting_count() == 2
        await queue.obliterate()


async def test_a_call_that_empties_a_key_and_fills_it_again_is_refused_as_a_whole(cluster: Cluster) -> None:
    """Found by chaos: in a slot that is being moved, a key that does not exist for a moment counts as moved.

    The call ends the only run and takes the next job: `active` and `leases` become empty in between.
    """
    target = await asyncio.to_thread(lambda: cluster.other_than(cluster.owner("emptied")))
    queue = Queue("emptied", cluster.url)
    await queue.add_many([{"data": n, "group_id": f"g{n % 2}", "job_id": f"job-{n}"} for n in range(8)])
    await queue.add("later", delay=600, ttl=900)  # creates keys, without which the call would be refused
    request, ends = 0, list[Any]()
    for request in range(1, 4):
        (taken,) = (await queue._call(take_next(request, ends))).jobs
        ends = [commands.completed(taken.id, taken.fence, b"1")]
    queue._connection.patience = 0.0
    with cluster.moving("emptied", target) as move:  # no key is moved yet
        before = dump(move)
        error = await refusal_of(lambda: queue._call(take_next(request + 1, ends)))
        assert dump(move) == before
        assert error is not None
    queue._connection.patience = 20.0
    answer = await queue._call(take_next(request + 1, ends))
    assert (answer.accepted, len(answer.jobs)) == ([1], 1)
    await queue.obliterate()
    await queue.close()


def take_next(request: int, outcomes: list[Any]) -> Any:
    """Report outcomes, and take one more job."""
    return commands.advance(
        worker="worker",
        requester="requester",
        request=request,
        outcomes=outcomes,
        take=1,
        lease_ms=LEASE_MS,
        policy=POLICY,
    )
