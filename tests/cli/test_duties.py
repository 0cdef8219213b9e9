"""The scheduler and the recovery, alone and in several copies."""

from __future__ import annotations

import signal
import time
from datetime import datetime

import pytest
import redis

from groupmq import Every
from groupmq.protocol import commands
from groupmq.protocol.commands import Policy
from groupmq.sync import Queue
from tests.cli.operating import Command
from tests.cli.programs import Programs
from tests.support.servers import Server
from tests.support.waiting import wait_until
from tests.support.workers import one_kind

pytestmark = one_kind


def take(queue: Queue, lease_ms: int = 100) -> str:
    """Act as a worker that takes a job and then dies."""
    answer = queue._connection.call(
        commands.advance(
            worker="gone",
            requester="gone:0",
            request=1,
            outcomes=[],
            take=1,
            lease_ms=lease_ms,
            policy=Policy(3, -1, {"completed": 100, "failed": 100}),
        )
    )
    return answer.jobs[0].id


def test_the_scheduler_starts_what_is_due(programs: Programs, queue: Queue) -> None:
    """It also starts jobs that were added after it went to sleep."""
    queue.pause()
    program = programs.start("scheduler", "-q", "orders", "--interval", "0.2")
    program.says("scheduler works on queue orders")
    delayed = queue.add(1, group_id="g", delay=0.5)
    program.until(lambda: queue.require_job(delayed.id).state == "waiting", "the delayed job waits")
    queue.add(2, group_id="r", repeat=Every(0.1, key="tick"))
    program.until(lambda: queue.get_group_job_count("r") >= 3, "the repeat ticks")
    program.signal(signal.SIGTERM)
    assert program.ends() == 0


def test_three_schedulers_make_one_job_per_tick(programs: Programs, queue: Queue) -> None:
    queue.add(1, group_id="r", repeat=Every(0.1, key="tick", limit=20))
    copies = [programs.start("scheduler", "-q", "orders") for _ in range(3)]
    copies[0].until(lambda: not queue.get_repeating_jobs(), "all ticks have been made")
    jobs = [queue.require_job(job_id) for job_id in queue.get_waiting_jobs()]
    assert len(jobs) == 20
    assert len({job.order_ms for job in jobs}) == 20
    for copy in copies:
        copy.signal(signal.SIGINT)
        assert copy.ends() == 0


def test_recovery_takes_back_what_the_dead_held(programs: Programs, queue: Queue) -> None:
    job = queue.add(1, group_id="g")
    copies = [programs.start("recovery", "-q", "orders", "--log-format", "json") for _ in range(2)]
    for copy in copies:
        copy.says("recovery works on queue orders")
    assert take(queue) == job.id
    copies[0].until(lambda: queue.require_job(job.id).state == "waiting", "the job waits again")
    found = queue.require_job(job.id)
    assert (found.attempts_made, found.stalls) == (1, 1)
    copies[0].until(lambda: any("because its lease expired" in copy.log for copy in copies), "the stall is logged")
    for copy in copies:
        copy.signal(signal.SIGTERM)
        assert copy.ends() == 0
    assert sum(copy.log.count("because its lease expired") for copy in copies) == 1


def test_recovery_trims_nothing_without_a_retention_of_its_own(programs: Programs, url: str) -> None:
    with Queue("orders", url, keep_failed=1000, max_attempts=1) as queue:
        for job in queue.add_many([{"data": n} for n in range(120)]):
            queue.fail(job.id)
        queue.add(1)
        take(queue, lease_ms=1)
        program = programs.start("recovery", "-q", "orders", "--max-attempts", "1")
        program.until(lambda: queue.get_failed_count() == 121, "the stalled one failed too")


def test_recovery_removes_what_is_too_old(programs: Programs, queue: Queue) -> None:
    for job in queue.add_many([{"data": n} for n in range(5)]):
        queue.fail(job.id)
    program = programs.start("recovery", "-q", "orders", "--failed-age", "0.2", "--cleanup-interval", "0.1")
    program.until(lambda: queue.get_failed_count() == 0, "the failed jobs are removed")


def test_once(programs: Programs, queue: Queue) -> None:
    job = queue.add(1, delay=0.01)
    program = programs.start("scheduler", "-q", "orders")
    program.until(lambda: queue.require_job(job.id).state == "waiting", "the job is due")
    late = queue.add(2, delay=0.001)
    once = programs.start("scheduler", "-q", "orders", "--once")
    assert once.ends() == 0
    assert queue.require_job(late.id).state == "waiting"


def test_once_answers_in_json_what_was_done(command: Command, queue: Queue) -> None:
    queue.add(1, run_at=time.time() - 5)
    job = queue.add(2, delay=0.001)
    wait_until(lambda: (queue.require_job(job.id).run_at or datetime.max).timestamp() < time.time(), "it is due")
    answer = command.program("scheduler", "--once", "--json").json
    assert answer["queue"] == "orders"
    assert (answer["duty"], answer["promoted"], answer["added"], answer["stalled"]) == ("scheduler", 1, 0, [])
    again = command.program("recovery", "--once", "--json", "--log-format", "text")
    assert again.json["done"] == 0
    assert "recovery: nothing was due" in again.err


@pytest.mark.parametrize("name", ["scheduler", "recovery"])
@pytest.mark.parametrize("once", [(), ("--once",)])
def test_a_queue_that_does_not_exist_is_refused_as_by_every_other_command(
    programs: Programs, client: redis.Redis, name: str, once: tuple[str, ...]
) -> None:
    stats = programs.start("queue", "stats", "odrers")
    assert stats.ends() == 1
    program = programs.start(name, "-q", "odrers", *once)
    assert program.ends() == 1
    assert program.log == stats.log
    assert "queue 'odrers' does not exist at " in program.log
    assert client.keys("*") == []


def test_they_wait_for_a_queue_if_they_are_asked_to(programs: Programs, url: str, client: redis.Redis) -> None:
    """They wait again if it is obliterated. They never create it, since its producer may have other settings."""
    names = ("scheduler", "recovery")
    copies = [programs.start(name, "-q", "orders", "--wait", "--interval", "0.05") for name in names]
    for copy in copies:
        copy.says("queue 'orders' does not exist at")
    assert client.keys("*") == []
    with Queue("orders", url, group_concurrency=2) as queue:
        job = queue.add(1, delay=0.05)
        copies[0].until(lambda: queue.require_job(job.id).state == "waiting", "the scheduler found the queue")
        for copy in copies:
            copy.says("queue orders exists now")
        queue.obliterate()
    for copy in copies:
        copy.says(r"(?s)queue 'orders' does not exist at.*queue 'orders' does not exist at")
        copy.signal(signal.SIGTERM)
        assert copy.ends() == 0
    assert client.keys("*") == []


@pytest.mark.parametrize("name", ["scheduler", "recovery"])
def test_mistakes(programs: Programs, name: str) -> None:
    program = programs.start(name)
    assert program.ends() == 2
    assert "which queue?" in program.log
    program = programs.start(name, "-q", "orders", "--once", "--wait")
    assert program.ends() == 2
    assert "--once and --wait exclude each other" in program.log
    program = programs.start(name, "-q", "orders", "--redis-url", "redis://127.0.0.1:1")
    assert program.ends() == 3
    assert len(program.log.splitlines()) == 1


def test_a_server_that_comes_back(programs: Programs) -> None:
    server = Server.start("valkey", aof=True)
    try:
        with Queue("orders", server.url) as queue:
            job = queue.add(1, delay=1.5)
            words = ("-q", "orders", "--redis-url", server.url, "--health-port", "0", "--bind", "127.0.0.1")
            program = programs.start("scheduler", *words)
            program.until(lambda: program.get("/readyz")[0] == 200, "ready")
            server.kill()
            program.until(lambda: program.get("/readyz")[0] == 503, "not ready")
            assert program.get("/livez")[0] == 200
            server.restart()
            program.until(lambda: queue.require_job(job.id).state == "waiting", "the job is due", 60)
            gives_up = programs.start("recovery", *words[:4], "--unreachable-timeout", "0.5")
            gives_up.says("works on")
            server.kill()
            assert gives_up.ends() == 3
    finally:
        programs.close()
        server.stop()
