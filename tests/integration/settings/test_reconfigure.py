"""Shared settings of time, order and fairness: a process that disagrees gets an error; a change applies to all jobs."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from itertools import permutations
from typing import Any

import pytest
import redis

from groupmq import ConfigurationError, Every, Job, Ordering, RateLimit, Worker
from groupmq.sync import Queue as SyncQueue
from tests.conftest import MakeQueue
from tests.support import keyspace
from tests.support.rates import excesses, started_ms
from tests.support.waiting import eventually
from tests.support.workers import Recorder

PLAIN: dict[str, Any] = {
    "ordering": None,
    "fairness": "oldest",
    "exclusive": False,
    "rate_limit": None,
    "group_rate_limit": None,
    "max_group_size": None,
    "priority_ageing": None,
}
"""The defaults, given explicitly, to change from any other settings to them."""
SETTINGS: dict[str, dict[str, Any]] = {
    "event_time": {"ordering": Ordering.event_time(0.05)},
    "arrival": {"ordering": Ordering.arrival(0.05)},
    "round-robin": {"fairness": "round-robin"},
    "exclusive": {"exclusive": True},
    "rate": {"rate_limit": RateLimit(10, per=0.05)},
    "group-rate": {"group_rate_limit": RateLimit(3, per=0.05)},
    "bounded": {"max_group_size": 100},
    "ageing": {"priority_ageing": 1},
}


async def nothing(_job: Job) -> None: ...


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            {"ordering": Ordering.event_time(2)},
            r"ordering is \{'kind': 'event_time', 'window': 2.0\} there and None here",
        ),
        ({"ordering": Ordering.arrival(2)}, r"ordering is \{'kind': 'arrival', .*\} there and None here"),
        ({"fairness": "round-robin"}, "fairness is 'round-robin' there and 'oldest' here"),
        ({"exclusive": True}, "exclusive is True there and False here"),
        ({"rate_limit": RateLimit(5, per=2)}, r"rate_limit is \{'count': 5, 'per': 2.0\} there and None here"),
        ({"group_rate_limit": RateLimit(5, per=2)}, r"group_rate_limit is \{'count': 5, 'per': 2.0\} there"),
        ({"max_group_size": 9}, "max_group_size is 9 there and None here"),
        ({"priority_ageing": 9}, "priority_ageing is 9.0 there and None here"),
    ],
)
async def test_a_process_with_another_value_is_refused_with_both_values(
    make_queue: MakeQueue, url: str, options: dict[str, Any], told: str
) -> None:
    await make_queue("shared", **options).add(1, group_id="g")
    name = next(iter(options))
    other = make_queue("shared", **{name: PLAIN[name]})
    told = f"queue 'shared' exists with other settings: {told}"
    with pytest.raises(ConfigurationError, match=told):
        await other.add(2, group_id="g")
    with pytest.raises(ConfigurationError, match=told):
        await other.add(2, group_id="g", repeat=Every(1))
    with pytest.raises(ConfigurationError, match=told):
        await Worker(other, nothing).start()
    given: Any = {name: PLAIN[name]}
    with SyncQueue("shared", url, **given) as blocking, pytest.raises(ConfigurationError, match=told):
        blocking.add(2, group_id="g")
    assert (await make_queue("shared", **options).get_job_counts()).total == 1


async def test_values_that_differ_are_named_too_and_agreement_opens(make_queue: MakeQueue) -> None:
    await make_queue("shared", rate_limit=RateLimit(5, per=2), fairness="round-robin").add(1)
    with pytest.raises(ConfigurationError, match=r"rate_limit is \{'count': 5, 'per': 2.0\} there and \{'count': 6"):
        await make_queue("shared", rate_limit=RateLimit(6, per=2), fairness="round-robin").add(1)
    await make_queue("shared", rate_limit=RateLimit(5, per=2.0), fairness="round-robin").add(1)


CHANGES = [
    *(("plain", name) for name in SETTINGS),
    *((name, "plain") for name in SETTINGS),
    *permutations(("event_time", "round-robin", "ageing", "group-rate"), 2),
]


@pytest.mark.parametrize(("before", "after"), CHANGES)
async def test_a_change_holds_for_what_waits_and_everything_drains_in_order(
    make_queue: MakeQueue, client: redis.Redis, before: str, after: str
) -> None:
    old, ran = make_queue("shared", **SETTINGS.get(before, PLAIN)), list[Job]()

    async def handle(job: Job) -> None:
        ran.append(job)

    # Some jobs run first, so that all state that the old settings need exists.
    await old.add_many([{"data": f"early {n}", "group_id": "g1"} for n in range(3)])
    await Worker(old, handle, concurrency=3).run(burst=True)
    items = shuffled_items(random.Random(f"{before} {after}"))
    await old.pause_group("g0")
    await old.add_many(items[:30])
    await old.add("delayed", group_id="g1", delay=0.05, priority=5)
    new = [make_queue("shared", **(PLAIN | SETTINGS.get(after, PLAIN))) for _ in range(2)]
    await new[0].reconfigure()
    keyspace.check(client)
    assert (await new[0].repair()).clean
    await new[0].add_many(items[30:])
    await new[0].resume_group("g0")
    async with Worker(new[0], handle, concurrency=3), Worker(new[1], handle, concurrency=3):
        assert await new[0].wait_for_empty(20)
    numbered = sorted((job for job in ran if isinstance(job.data, int)), key=lambda job: job.fence)
    assert sorted(job.data for job in numbered) == list(range(40))
    assert sorted(job.data for job in ran if isinstance(job.data, str)) == [
        "delayed",
        *(f"early {n}" for n in range(3)),
    ]
    check_order(numbered, ageing_ms=1000 if after == "ageing" else 0)
    check_limits(numbered, **SETTINGS.get(after, PLAIN))


def shuffled_items(dice: random.Random) -> list[dict[str, Any]]:
    """Forty jobs of five groups. Their orders are times in the distant past."""
    orders = dice.sample(range(1_700_000_000_000, 1_700_000_100_000), 40)
    return [
        {"data": n, "group_id": f"g{n % 5}", "priority": dice.choice([0, 0, 5]), "order_ms": order}
        for n, order in enumerate(orders)
    ]


def check_order(jobs: list[Job], ageing_ms: int) -> None:
    """Check that the jobs of each group were granted by priority, then by order."""
    groups = defaultdict(list)
    for job in jobs:
        place = (0, job.order_ms + job.priority * ageing_ms) if ageing_ms else (job.priority, job.order_ms)
        groups[job.group_id].append(place)
    for group, places in groups.items():
        assert places == sorted(places), f"group {group} ran as {places}"


def check_limits(
    jobs: list[Job],
    *,
    rate_limit: RateLimit | None = None,
    group_rate_limit: RateLimit | None = None,
    fairness: str = "oldest",
    **_: Any,
) -> None:
    if rate_limit is not None:
        assert excesses(started_ms(jobs), rate_limit) == []
    for group in {job.group_id for job in jobs}:
        if group_rate_limit is not None:
            assert excesses(started_ms(job for job in jobs if job.group_id == group), group_rate_limit) == []
    if fairness == "round-robin":
        assert {job.group_id for job in jobs[:5]} == {f"g{g}" for g in range(5)}, "a group was passed over"


@pytest.mark.parametrize("after", [*SETTINGS])
async def test_workers_of_before_end_what_they_run_and_those_of_after_do_the_rest(
    make_queue: MakeQueue, after: str
) -> None:
    """Jobs that an old worker runs during the change are recorded. No job hangs or runs twice."""
    old, handler = make_queue("shared"), Recorder()
    handler.gate = asyncio.Event()
    await old.add_many([{"data": n, "group_id": f"g{n % 3}"} for n in range(12)])
    async with Worker(old, handler, concurrency=2) as worker:
        await eventually(lambda: len(handler.started) == 2, "two jobs run in the old worker")
        new = make_queue("shared", **SETTINGS[after])
        await new.reconfigure()
        closing = asyncio.create_task(worker.close())
        handler.gate.set()
        await closing
        assert worker.get_worker_metrics().completed == 2, "what it ran was not recorded"
    async with Worker(new, handler, concurrency=2):
        assert await new.wait_for_empty(10)
    assert sorted(handler.ended) == list(range(12))


@pytest.mark.parametrize("after", [*SETTINGS])
async def test_a_worker_of_before_that_goes_on_harms_nothing(make_queue: MakeQueue, after: str) -> None:
    """It does not know of the change. It follows the server's rules anyway, or gets an error. All jobs are run."""
    old, handler = make_queue("shared"), Recorder(seconds=0.005)
    new = make_queue("shared", **SETTINGS[after])
    async with Worker(old, handler, concurrency=2, blocking_timeout=0.5):
        await old.add_many([{"data": n, "group_id": f"g{n % 3}"} for n in range(12)])
        await eventually(lambda: handler.ended, "the old worker is at work")
        await new.reconfigure()
        await new.add_many([{"data": n, "group_id": f"g{n % 3}"} for n in range(12, 24)])
        async with Worker(new, handler, concurrency=2, blocking_timeout=0.5):
            assert await new.wait_for_empty(15)
    assert sorted(handler.ended) == list(range(24))


async def test_an_exclusive_queue_that_becomes_a_common_one_ends_its_turn(
    make_queue: MakeQueue, client: redis.Redis
) -> None:
    old, handler = make_queue("shared", exclusive=True), Recorder()
    handler.gate = asyncio.Event()
    new = make_queue("shared", exclusive=False)
    async with Worker(old, handler, concurrency=1):
        await old.add(0, group_id="g0")
        await eventually(lambda: handler.started, "the holder is at work")
        # These adds set only the marker of the holder, on which no worker blocks after the change.
        await old.add_many([{"data": n, "group_id": f"g{n}"} for n in range(1, 6)])
        await new.reconfigure()
        keyspace.check(client)
        async with Worker(new, handler, concurrency=2):
            await eventually(lambda: len(handler.started) == 3, "other jobs run beside that of the holder")
            assert await new.get_turn() is None
            handler.gate.set()
            assert await new.wait_for_empty(10)
    assert sorted(handler.ended) == list(range(6))
