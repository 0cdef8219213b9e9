"""The access rules of docs/security.md: each user can do what it is meant for, and a viewer cannot change anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from groupmq import Durability, Every, GroupMQError, NotDurable, Queue, Worker
from groupmq.errors import ServerRefused
from groupmq.sync import Queue as SyncQueue
from tests.conftest import MakeQueue
from tests.support.permissions import PAGE, RULES
from tests.support.servers import Server
from tests.support.workers import Recorder

MakeUser = Callable[[str], str]
[ONE_QUEUE] = map(str.split, re.findall(r"write `(.*)` in place of `~groupmq:\*`", PAGE.read_text("utf-8")))
"""The key patterns of a user who may see only the queue `orders`."""
pytestmark = pytest.mark.one_server("users of a cluster have tests of their own: tests/cluster/test_permissions.py")


@pytest.fixture(params=["function", "script", "function, one queue"])
def make_user(request: pytest.FixtureRequest, server: Server, client: Any) -> Iterator[MakeUser]:
    """Makes a user with the rules of the page, who can call only functions or only scripts. Returns the user's URL."""
    way, _, one_queue = request.param.partition(", ")
    client.execute_command("ACL", "LOG", "RESET")  # entries about users of other tests
    made = []

    def make(name: str) -> str:
        other = ("eval", "evalsha") if way == "function" else ("fcall", "function")
        given = of_one_queue(RULES[name]) if one_queue else RULES[name]
        rules = [rule for rule in given if not rule.removeprefix("+").startswith(other)]
        if server.kind == "redis":
            rules.remove("+waitaof") if "+waitaof" in rules else None
        client.execute_command("ACL", "SETUSER", name, *rules)
        made.append(name)
        return server.url.replace("redis://", f"redis://{name}:secret@")

    yield make
    refused = [entry[b"object"] for entry in map(_pairs, client.execute_command("ACL", "LOG"))]
    client.execute_command("ACL", "LOG", "RESET")
    client.execute_command("ACL", "DELUSER", *made)
    # Without these commands the client works in another way.
    spared = {b"client|setinfo", b"client|id", b"client|unblock"}
    if way == "script":
        spared |= {b"fcall", b"fcall_ro", b"function|list"}
    else:
        spared |= {b"eval"}
    assert set(refused) - spared - request.node.stash.get(EXPECTED, set()) == set()


def of_one_queue(rules: list[str]) -> list[str]:
    wide = next(rule for rule in rules if rule.endswith("~groupmq:*"))
    narrow = [wide.removesuffix("~groupmq:*") + pattern for pattern in ONE_QUEUE]
    return [*narrow, *(rule for rule in rules if rule != wide)]


EXPECTED = pytest.StashKey[set[bytes]]()


def _pairs(entry: Any) -> dict[bytes, Any]:
    if isinstance(entry, dict):
        return entry
    return dict(zip(entry[::2], entry[1::2], strict=True))


def test_the_page_has_four_users() -> None:
    assert list(RULES) == ["viewer", "producer", "worker", "operator"]


async def test_a_producer_adds_and_waits_for_results(make_user: MakeUser, make_queue: MakeQueue, url: str) -> None:
    recorder = Recorder()
    async with Queue("orders", make_user("producer"), events=True) as queue:
        job = await queue.add(1, group_id="g", job_id="a", delay=0.01)
        await queue.add_many([{"data": n} for n in range(10)])
        await queue.add(2, repeat=Every(60, key="k"))
        async with Queue("orders", url) as theirs, Worker(theirs, recorder):
            await job.result(timeout=20)
            assert await queue.wait_for_empty(20)
        assert (await queue.get_job_counts()).completed == 11
        assert await queue.remove_repeating_job(None, "k")


async def test_a_producer_may_wait_for_durability(make_user: MakeUser) -> None:
    async with Queue("orders", make_user("producer"), durability=Durability(replicas=1, timeout=0.05)) as queue:
        with pytest.raises(NotDurable):
            await queue.add(1)


async def test_a_worker_runs_retries_logs_and_closes(make_user: MakeUser, make_queue: MakeQueue) -> None:
    theirs = make_user("worker")
    queue = make_queue("orders")
    failures = 0

    async def handle(job: Any) -> int:
        nonlocal failures
        await job.report_progress(50)
        await job.log("half of it")
        if job.data == "bad" and failures == 0:
            failures += 1
            raise ValueError("once")
        return 7

    async with Queue("orders", theirs) as own, Worker(own, handle, heartbeat=0.05, cleanup_interval=0.1):
        jobs = await queue.add_many(
            [
                {"data": "bad", "group_id": "g", "backoff": 0.01},
                {"data": 2, "group_id": "g"},
                {"data": 3, "delay": 0.05},
            ]
        )
        assert [await job.result(timeout=20) for job in jobs] == [7, 7, 7]
        await own.add(4, repeat=Every(0.1, limit=2))
        assert await queue.wait_for_empty(20)


async def test_an_operator_does_everything(make_user: MakeUser, make_queue: MakeQueue) -> None:
    queue = make_queue("orders")
    await queue.add_many([{"data": n, "group_id": f"g{n % 3}", "job_id": f"j{n}"} for n in range(12)])
    theirs = make_user("operator")
    async with Queue("orders", theirs) as operator:
        await operator.pause()
        await operator.pause_group("g0")
        await operator.set_group_concurrency("g1", 2)
        assert await operator.fail("j0", "no")
        await operator.retry("j0")
        await operator.update_data("j1", {"new": 1})
        await operator.change_delay("j2", 60)
        await operator.promote("j2")
        assert await operator.remove("j3")
        assert await operator.cancel_group("g2") > 0
        await operator.clean("waiting", grace=0, limit=2)
        await operator.purge(("waiting",))
        assert (await operator.repair()).clean
        await operator.resume_group("g0")
        await operator.resume()
        await operator.mark("deployed")
        assert {finding.status for finding in await operator.check()} <= {"ok", "warn"}
        await operator.get_server_info()
        await operator.reconfigure()
        assert [found.name for found in await Queue.list(theirs)] == ["orders"]
        if operator._connection.session.calls_by == "function":
            await Queue.prune_libraries(theirs)
        await operator.obliterate()


LOOKING: list[Callable[[Queue], Any]] = [
    lambda queue: queue.get_job_counts(),
    lambda queue: queue.get_job("a"),
    lambda queue: queue.get_jobs(),
    lambda queue: queue.get_metrics(),
    lambda queue: queue.get_groups(),
    lambda queue: queue.get_group("g"),
    lambda queue: queue.get_group_jobs("g"),
    lambda queue: queue.get_position("a"),
    lambda queue: queue.get_workers(),
    lambda queue: queue.get_repeating_jobs(),
    lambda queue: queue.get_failure_groups(),
    lambda queue: queue.survey(),
    lambda queue: queue.get_settings(),
    lambda queue: queue.get_marks(),
    lambda queue: queue.get_attempts("a"),
]
OVER_PARTITIONS: list[Callable[[Queue], Any]] = [*LOOKING, lambda queue: queue.get_blocked_groups()]
CHANGING: list[Callable[[Queue], Any]] = [
    lambda queue: queue.add(1),
    lambda queue: queue.remove("a"),
    lambda queue: queue.fail("a"),
    lambda queue: queue.pause(),
    lambda queue: queue.purge(("waiting",)),
    lambda queue: queue.obliterate(),
    lambda queue: queue.repair(),
]


async def test_a_viewer_looks_and_changes_nothing(
    make_user: MakeUser, make_queue: MakeQueue, client: Any, request: pytest.FixtureRequest
) -> None:
    queue = make_queue("orders")
    await queue.add_many([{"data": 1, "group_id": "g", "job_id": "a"}, {"data": 2, "group_id": "g"}])
    theirs = make_user("viewer")
    viewer = await Queue.open("orders", theirs)
    before = {key: client.dump(key) for key in client.keys("groupmq:{orders}:*")}
    for look in LOOKING:
        await look(viewer)
    assert [found.name for found in await Queue.list(theirs)] == ["orders"]
    for change in CHANGING:
        with pytest.raises(GroupMQError) as refusal:
            await change(viewer)
        assert isinstance(refusal.value, ServerRefused), refusal.value
        assert refusal.value.kind == "NOPERM"
        for look in LOOKING:
            await look(viewer)
    assert {key: client.dump(key) for key in client.keys("groupmq:{orders}:*")} == before
    await viewer.close()
    request.node.stash[EXPECTED] = {b"fcall", b"eval", b"evalsha"}
    with SyncQueue.open("orders", theirs) as blocking:
        assert blocking.get_job_counts().waiting == 2


async def test_a_viewer_with_all_its_rules_keeps_to_functions_and_is_told_of_them(
    server: Server, make_queue: MakeQueue, client: Any
) -> None:
    await make_queue("orders").add(1)
    client.execute_command("ACL", "SETUSER", "viewer", *RULES["viewer"])
    try:
        viewer = await Queue.open("orders", server.url_of("viewer", "secret"))
        for _ in range(2):
            with pytest.raises(ServerRefused, match="'fcall'"):
                await viewer.pause()
            assert (await viewer.get_job_counts()).waiting == 1
            assert viewer.calls_by == "function"
        await viewer.close()
    finally:
        client.execute_command("ACL", "DELUSER", "viewer")


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("partitions", [1, 3])
async def test_a_user_of_one_queue_gets_into_no_other(
    server: Server, url: str, client: Any, name: str, partitions: int
) -> None:
    client.execute_command("ACL", "SETUSER", name, *of_one_queue([rule for rule in RULES[name] if rule != "+waitaof"]))
    try:
        for other in ("order", "orders2", "orders-"):
            async with Queue(other, url, partitions=partitions) as queue:
                await queue.add(1, job_id="a")
            with pytest.raises(ServerRefused, match="denies this user"):
                await (await Queue.open(other, server.url_of(name, "secret"))).get_job_counts()
        if "+sscan" in RULES[name]:
            assert await Queue.list(server.url_of(name, "secret")) == []
    finally:
        client.execute_command("ACL", "DELUSER", name)


async def test_the_rules_suffice_for_a_queue_with_partitions(
    make_user: MakeUser, make_queue: MakeQueue, client: Any, request: pytest.FixtureRequest
) -> None:
    recorder = Recorder()
    async with Queue("orders", make_user("producer"), partitions=3) as producer:
        job = await producer.add(1, group_id="g", job_id="a")
        await producer.add_many([{"data": n, "group_id": f"g{n}"} for n in range(10)])
        async with Queue("orders", make_user("worker")) as own, Worker(own, recorder, cleanup_interval=0.1):
            await job.result(timeout=20)
            assert await producer.wait_for_empty(20)
    async with Queue("orders", make_user("operator")) as operator:
        await operator.pause()
        await operator.reconfigure(max_attempts=7)
        assert (await operator.repair()).clean
        await operator.repartition(2)
        await operator.add(1, group_id="g", job_id="b")
    theirs = make_user("viewer")
    viewer = await Queue.open("orders", theirs)
    for part in await make_queue("orders")._learn():
        assert (await part.get_job_counts()).active == 0
    before = {key: client.dump(key) for key in client.keys("groupmq:{orders*")}
    for look in OVER_PARTITIONS:
        await look(viewer)
    # A process changes the settings and dies before any partition has received them. A user without writes can still
    # read the queue.
    other = make_queue("orders")
    await other._connection.reconfigure({"max_attempts": 9})
    before = {key: client.dump(key) for key in client.keys("groupmq:{orders*")}
    assert (await viewer.get_settings()).max_attempts == 9
    for look in OVER_PARTITIONS:
        await look(viewer)
    for change in CHANGING:
        with pytest.raises(GroupMQError) as refusal:
            await change(viewer)
        assert isinstance(refusal.value, ServerRefused), refusal.value
        for look in OVER_PARTITIONS:
            await look(viewer)
    assert {key: client.dump(key) for key in client.keys("groupmq:{orders*")} == before
    await viewer.close()
    request.node.stash[EXPECTED] = {b"fcall", b"eval", b"evalsha"}
