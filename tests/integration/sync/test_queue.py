"""The blocking client: the twin of the asynchronous one, in threads and after a fork."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

import groupmq
from groupmq import ConfigurationError, Job, JobNotFound, Worker, WrongState
from groupmq.core.ids import new_id
from groupmq.sync import Job as SyncJob
from groupmq.sync import Queue

ASYNC_ONLY = {"process", "work"}
JOB_ASYNC_ONLY = {"report_progress", "log"}
"""Only handlers use these methods, and they always get an asynchronous job."""


@pytest.fixture
def queue(url: str) -> Iterator[Queue]:
    with Queue(f"q-{new_id()}", url) as queue:
        yield queue


def drain(queue: Queue, url: str, handle: Callable[[Job], Any]) -> None:
    """Run every job that can start, with a real worker."""

    async def work() -> None:
        async with groupmq.Queue(queue.name, url) as same:
            await Worker(same, handle, concurrency=4).run(burst=True)

    asyncio.run(work())


def public(cls: type) -> dict[str, Any]:
    return {name: member for name, member in inspect.getmembers(cls, callable) if not name.startswith("_")}


def parameters(member: Any) -> list[inspect.Parameter]:
    """The parameters of a method, without `self`."""
    return list(inspect.signature(member).parameters.values())[1:]


@pytest.mark.parametrize(
    ("twin", "original", "left_out"), [(Queue, groupmq.Queue, ASYNC_ONLY), (SyncJob, groupmq.Job, JOB_ASYNC_ONLY)]
)
def test_the_twins_have_the_same_methods_with_the_same_arguments(
    twin: type, original: type, left_out: set[str]
) -> None:
    theirs = {name: member for name, member in public(original).items() if name not in left_out}
    mine = public(twin)
    assert set(mine) == set(theirs)
    for name, member in theirs.items():
        assert parameters(mine[name]) == parameters(member), name
        assert not inspect.iscoroutinefunction(mine[name])


def test_jobs_added_by_the_blocking_client_run_in_order(queue: Queue, url: str) -> None:
    for n in range(5):
        queue.add({"n": n}, group_id="g")
    queue.add_many([{"data": {"n": n}, "group_id": "g"} for n in range(5, 10)])
    seen: list[int] = []
    drain(queue, url, lambda job: seen.append(job.data["n"]))
    assert seen == list(range(10))
    assert queue.wait_for_empty(timeout=5)


def test_looking(queue: Queue, url: str) -> None:
    done = queue.add(1, group_id="a")
    drain(queue, url, lambda job: job.data + 1)
    waiting = queue.add(2, group_id="b")
    delayed = queue.add(3, group_id="c", delay=60)
    counts = queue.get_job_counts()
    assert (counts.waiting, counts.delayed, counts.completed, counts.total, counts.unique_groups) == (1, 1, 1, 2, 2)
    assert (queue.get_waiting_count(), queue.get_delayed_count(), queue.get_active_count()) == (1, 1, 0)
    assert (queue.get_completed_count(), queue.get_failed_count()) == (1, 0)
    assert queue.get_jobs()["waiting"] == queue.get_waiting_jobs() == [waiting.id]
    assert queue.get_delayed_jobs() == [delayed.id]
    assert queue.get_active_jobs() == []
    assert [job.return_value for job in queue.get_completed_jobs()] == [2]
    assert sorted(queue.get_unique_groups()) == ["b", "c"]
    assert queue.get_unique_groups_count() == 2
    assert (queue.get_group("b").state, queue.get_group_job_count("b")) == ("ready", 1)
    assert queue.get_metrics().completed == 1
    assert queue.get_workers() == []
    assert queue.get_failures() == []
    assert queue.get_failed_jobs() == []
    found = queue.get_job(done.id)
    assert isinstance(found, SyncJob)
    assert found.state == "completed"
    assert queue.get_job("nobody") is None


def test_changing(queue: Queue) -> None:
    job = queue.add(1, group_id="g", delay=60)
    assert job.get_state() == "delayed"
    assert job.change_delay(30)
    assert job.promote()
    assert job.refresh().state == "waiting"
    job.update({"new": True})
    assert queue.require_job(job.id).data == {"new": True}
    with pytest.raises(WrongState):
        job.retry()
    assert job.fail("because")
    assert job.refresh().failed_reason == "because"
    assert job.retry()
    assert queue.pause_group("g")
    assert queue.get_group("g").state == "paused"
    assert queue.resume_group("g")
    assert queue.set_group_concurrency("g", 2)
    queue.pause()
    assert queue.is_paused()
    queue.resume()
    assert not queue.is_paused()
    assert job.remove()
    assert not queue.remove(job.id)
    with pytest.raises(JobNotFound):
        queue.fail(job.id)
    queue.create_job(5).group("h").retries(2).save()
    assert queue.clean("waiting") == 1
    queue.add(6)
    assert queue.purge() == 1
    assert not queue.repair()
    assert queue.run_scheduler_once() == 0
    assert (queue.promote_delayed_jobs(), queue.recover_delayed_groups(), queue.check_stalled_jobs()) == (0, 0, [])
    queue.reconfigure()


def test_obliterate_leaves_no_key(queue: Queue, client: redis.Redis) -> None:
    queue.add(1, group_id="g")
    queue.obliterate()
    assert client.keys(f"*{queue.name}*") == []


def test_duplicates_are_marked_as_such(queue: Queue) -> None:
    first = queue.add("first", job_id="one")
    second = queue.add("second", job_id="one")
    assert (first.duplicate, second.duplicate, second.data) == (False, True, "first")


def test_many_threads_may_share_a_queue(queue: Queue) -> None:
    def produce() -> None:
        for _ in range(50):
            queue.add("x", group_id="g")

    threads = [threading.Thread(target=produce) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert queue.get_waiting_count() == 400


def test_a_forked_child_may_go_on_using_the_queue(queue: Queue) -> None:
    queue.add("parent", group_id="g")
    child = os.fork()
    if child == 0:
        try:
            queue.add("child", group_id="g")
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    queue.add("parent again", group_id="g")
    jobs = [queue.require_job(job_id).data for job_id in queue.get_waiting_jobs()]
    assert jobs == ["parent", "child", "parent again"]


@pytest.mark.one_server("a client of one server is handed in")
@pytest.mark.parametrize("options", [{"decode_responses": True}, {"protocol": 3}, {"protocol": 2}])
def test_a_client_of_the_users_is_used_and_never_closed(url: str, options: dict[str, Any]) -> None:
    mine = redis.Redis.from_url(url, **options)
    with Queue(f"q-{new_id()}", mine) as queue:
        job = queue.add({"ü": "\x00"}, group_id="g {}:active")
        found = queue.require_job(job.id)
        assert (found.data, found.group_id) == ({"ü": "\x00"}, "g {}:active")
    assert mine.ping()
    mine.close()


@pytest.mark.one_server("a client of one server is handed in")
async def test_an_asynchronous_client_is_refused(url: str) -> None:
    client = redis.asyncio.Redis.from_url(url)
    with pytest.raises(ConfigurationError, match=r"redis: expected a URL or a redis\.Redis client"):
        Queue("q", client)
    await client.aclose()
