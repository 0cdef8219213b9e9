"""Small promises to users: numbers of finished jobs, copies, URLs, permissions, clear messages for a wrong object."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from groupmq import ConfigurationError, FailJob, Job, Queue, Worker
from groupmq.sync import Job as SyncJob
from groupmq.sync import Queue as SyncQueue
from tests.conftest import MakeQueue
from tests.support.listening import Heard
from tests.support.servers import Server
from tests.support.waiting import wait_until


async def test_a_finished_jobs_attempt_is_the_number_of_its_last_run(queue: Queue) -> None:
    async def handle(job: Job) -> None:
        if job.data == "fails" or job.attempt < 3:
            raise (FailJob if job.data == "fails" else ValueError)("no")

    heard: dict[str, tuple[int, int]] = {}
    worker = Worker(queue, handle, backoff=0)
    worker.on("completed", lambda job: heard.update({job.id: (job.attempt, job.fence)}))
    worker.on("failed", lambda job: heard.update({job.id: (job.attempt, job.fence)}))
    third, failed = await queue.add("third"), await queue.add("fails")
    never = await queue.add("never", delay=60)
    await never.fail("by hand")
    await worker.run(burst=True)
    found = {job.id: await queue.require_job(job.id) for job in (third, failed, never)}
    assert [found[job.id].attempt for job in (third, failed, never)] == [3, 1, 0]
    assert [found[job.id].attempts_made for job in (third, failed, never)] == [3, 1, 0]
    assert [heard[job.id][0] for job in (third, failed)] == [3, 1]
    assert all(fence > 0 for _, fence in heard.values()), "listeners of the worker must get the fence of the run"
    assert found.pop(never.id).fence == 0, "a job that never ran has no fence"
    assert {job_id: (job.attempt, job.fence) for job_id, job in found.items()} == heard


async def test_metrics_of_a_worker_are_a_copy(queue: Queue) -> None:
    worker = Worker(queue, lambda job: None)
    before = worker.get_worker_metrics()
    await queue.add(1)
    await worker.run(burst=True)
    assert (before.completed, worker.get_worker_metrics().completed) == (0, 1)
    worker.get_worker_metrics().completed = 99
    assert worker.get_worker_metrics().completed == 1


def test_a_worker_of_a_blocking_queue_is_refused_with_what_to_do(url: str) -> None:
    with SyncQueue("q", url) as queue:
        blocking: Any = queue
        with pytest.raises(
            ConfigurationError, match=r"^queue: a Worker needs a groupmq\.Queue, got a groupmq\.sync\.Queue"
        ):
            Worker(blocking, lambda job: None)


@pytest.mark.parametrize("kind", [Queue, SyncQueue])
@pytest.mark.parametrize(
    ("url", "option"), [("redis://h/0?retry_forever=1", "retry_forever"), ("unix:///tmp/s?colour=red", "colour")]
)
async def test_an_unknown_option_in_a_url_is_refused_by_name_at_once(kind: Any, url: str, option: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^redis: unknown option '{option}' after the '\\?' of the URL"):
        kind("q", url)


@pytest.mark.parametrize("kind", [Queue, SyncQueue])
@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("redis://h/zz", r"^redis: expected a database number after the host, got 'zz'$"),
        ("rediss://user:secret@h:6379/-1", "got '-1'$"),
        ("valkey://h/0/1", "got '0/1'$"),
        ("redis://h?socket_timeout=abc", r"^redis: socket_timeout has a wrong value after the '\?' of the URL: 'abc'$"),
        ("redis://h?db=x", "^redis: db has a wrong value after .*: 'x'$"),
        ("redis+sentinel://h/service/0?socket_timeout=abc", "^redis: socket_timeout has a wrong value .*: 'abc'$"),
        ("redis://h/1?db=4", "^redis: the URL names database 1, and 4 after its '.'; leave one out$"),
        ("redis+sentinel://h/service/1?db=4", "^redis: the URL names database 1, and 4 after"),
        ("redis+cluster://h/1?db=4", "^redis: the URL names database 1, and 4 after"),
        (
            "redis://me:secret@h:notaport",
            "^redis: expected a number .* as the port of a URL .*, got 'redis://h:notaport'$",
        ),
        ("redis://h:70000", "as the port of a URL"),
        ("redis+cluster://h,me:notaport", "as the port of a URL"),
        ("rediss://h?ssl_ca_certs=/no/ca.pem", "^redis: ssl_ca_certs names '/no/ca.pem', which does not exist$"),
        ("rediss+sentinel://h/service?ssl_keyfile=/no/key.pem", "^redis: ssl_keyfile names '/no/key.pem'"),
    ],
)
async def test_a_wrong_database_or_value_in_a_url_is_refused_by_name_at_once(kind: Any, url: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told) as caught:
        kind("q", url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("path", ["", "/", "/0"])
def test_a_url_with_or_without_a_database_is_taken(path: str) -> None:
    assert Queue("q", f"redis://h:1{path}").address == f"redis://h:1{path}"


@pytest.mark.parametrize("url", ["redis://h:1", "redis+sentinel://h:1/service", "redis+cluster://h:1"])
@pytest.mark.parametrize("spelled", ["/4", "?db=4", "/4?db=4", "/?db=4"])
def test_the_database_that_is_used_is_shown(url: str, spelled: str) -> None:
    assert Queue("q", f"{url}{spelled}").address == f"{url}/4"


@pytest.mark.one_server("a cluster has one database")
async def test_a_database_that_the_server_does_not_have_is_a_mistake_of_the_url(server: Server) -> None:
    told = r"^redis: the server at redis://\S+/9999 has no database of this number"
    async with Queue("q", f"{server.url.rpartition('/')[0]}/9999") as queue:
        with pytest.raises(ConfigurationError, match=told):
            await queue.add(1)
        with pytest.raises(ConfigurationError, match=told):
            await Worker(queue, print).run(burst=True)


@pytest.mark.parametrize("kind", [Queue, SyncQueue])
async def test_known_options_in_a_url_are_taken(kind: Any, server: Server) -> None:
    queue = kind("q", f"{server.url}?socket_timeout=3&client_name=shop&max_connections=60&health_check_interval=5")
    added = queue.add(1)
    if asyncio.iscoroutine(added):
        await added
        await queue.close()
    else:
        queue.close()


async def test_results_are_prompt_for_a_user_who_may_not_ask_for_its_connection_id(
    make_queue: MakeQueue, client: Any, server: Server
) -> None:
    client.acl_setuser("plain", enabled=True, nopass=True, keys=["*"], channels=["*"], commands=["+@all", "-client|id"])
    try:
        queue = make_queue(redis=server.url_of("plain"), keep_completed=0)
        first = make_queue(redis=server.url_of("plain"))
        async with Worker(queue, lambda job: job.data), Worker(first, lambda job: job.data):
            for n in range(3):
                # The second queue subscribes while the shared connection is reading the log of the first.
                assert await (await first.add(n)).result(5) == n
                assert await (await queue.add(n)).result(5) == n
    finally:
        client.acl_deluser("plain")


def test_listeners_of_a_blocking_job_get_past_and_new_events(url: str) -> None:
    with SyncQueue("q", url) as queue:
        job, other = queue.add("talk"), queue.add("other")
        heard, gone = Heard(), Heard()
        for kind in ("added", "failed", "removed"):
            assert job.on(kind, heard.append) == heard.append
        job.on("failed", gone.append)
        assert job.off("failed", gone.append) is True
        assert job.off("failed", gone.append) is False
        assert other.off("failed", gone.append) is False
        other.fail("no")
        job.fail("by hand")
        wait_until(lambda: [event.kind for event in heard][-1:] == ["failed"], "the event is received")
        assert [event.kind for event in heard] == ["added", "failed"]
        assert {event.job_id for event in heard} == {job.id}
        assert list(gone) == []
        again = queue.require_job(job.id)
        assert isinstance(again, SyncJob)
        later = Heard()
        again.on("failed", later.append)
        wait_until(lambda: [event.kind for event in later] == ["failed"], "the past event is received")


def test_a_listener_of_a_blocking_job_that_raises_harms_nobody(url: str) -> None:
    def bad(event: object) -> None:
        raise ValueError("no")

    with SyncQueue("q", url) as queue:
        job, heard = queue.add(1), Heard()
        job.on("removed", bad)
        job.on("removed", heard.append)
        job.remove()
        wait_until(lambda: heard, "the other listener gets the event")
        with pytest.raises(ConfigurationError, match=r"^event: "):
            job.on("unheard of", heard.append)
