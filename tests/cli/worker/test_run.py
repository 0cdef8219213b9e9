"""A worker from the command line: its imports, the settings that it adopts, and its handlers."""

from __future__ import annotations

import gc
import json
import signal

import pytest

from groupmq import Ordering, RateLimit
from groupmq.sync import Queue
from tests.cli.programs import Programs
from tests.support.servers import Server
from tests.support.workers import one_kind

pytestmark = one_kind


def test_a_burst_runs_what_there_is_and_ends(programs: Programs, queue: Queue) -> None:
    jobs = queue.add_many([{"group_id": "g", "data": n} for n in range(20)])
    program = programs.worker("--burst", "-c", "8")
    assert program.ends() == 0
    assert [line["job"] for line in programs.diary("start")] == [job.id for job in jobs]
    assert queue.get_job_counts().completed == 20
    assert "it ran 20 jobs" in program.log


def test_a_burst_in_two_processes(programs: Programs, queue: Queue) -> None:
    queue.add_many([{"data": n} for n in range(50)])
    assert programs.worker("--burst", "--processes", "2").ends() == 0
    assert queue.get_job_counts().completed == 50


@pytest.mark.parametrize(
    ("own", "threshold"), [("", 5000), ("gc.set_threshold(9000, 5, 5)", 9000), ("gc.set_threshold(0)", 0)]
)
def test_what_is_imported_is_no_garbage(programs: Programs, queue: Queue, own: str, threshold: int) -> None:
    """If a program has set its own thresholds of the garbage collector, they are kept."""
    module = f"import gc\n{own}\ndef look(job):\n    return [gc.get_freeze_count(), *gc.get_threshold()]\n"
    programs.write("looking.py", module)
    job = queue.add(1)
    assert programs.worker("--burst", spec="looking:look").ends() == 0
    frozen, first, *others = queue.require_job(job.id).return_value
    assert frozen > 10_000
    assert first == threshold
    assert others == ([5, 5] if threshold == 9000 else list(gc.get_threshold()[1:]))


def test_a_burst_of_a_queue_that_nobody_made_makes_none(programs: Programs, queue: Queue, url: str) -> None:
    program = programs.worker("--burst")
    assert program.ends() == 0
    assert "nothing to do" in program.log
    with Queue("orders", url, group_concurrency=7) as other:
        other.add(1)


def test_stored_settings_are_adopted(programs: Programs, url: str) -> None:
    """All connections must use them, otherwise the heartbeat would be refused. The job outlives several heartbeats."""
    settings: dict[str, object] = {
        "group_concurrency": 2,
        "ordering": Ordering.arrival(0.01, max_wait=0.02),
        "fairness": "round-robin",
        "exclusive": True,
        "rate_limit": RateLimit(1000, per=1),
        "group_rate_limit": RateLimit(500, per=0.5),
        "max_group_size": 9,
        "events": False,
        "job_timeout": 0.6,
    }
    with Queue("orders", url, **settings) as queue:  # type: ignore[arg-type]
        job = queue.add("wait", group_id="g")
        program = programs.worker()
        program.until(lambda: programs.diary("start"), "the job runs")
        turn = queue.get_turn()
        assert turn is not None
        lease = turn.expires_in
        program.until(lambda: len(queue.get_workers()) == 1, "the worker is registered")
        before = queue.get_workers()[0].last_seen
        program.until(lambda: queue.get_workers()[0].last_seen > before, "its heartbeat has come again")
        programs.open_gate()
        program.until(lambda: queue.require_job(job.id).state == "completed", "the job ends")
        assert lease <= 0.6
        assert queue.require_job(job.id).attempts_made == 1
        assert "settings" not in program.log


def test_a_worker_with_on_failed_hold_makes_a_queue_whose_groups_stop_behind_a_failed_job(
    programs: Programs, url: str
) -> None:
    program = programs.worker("--on-failed", "hold", "--max-attempts", "1")
    program.until(lambda: "orders" in {one.name for one in Queue.list(url)}, "the worker has made the queue")
    with Queue("orders", url, on_failed="hold") as queue:
        queue.add_many({"data": data, "group_id": "g", "job_id": data} for data in ("fail", "behind"))
        program.until(lambda: queue.get_group("g").blocked_by == "fail", "the failed job blocks its group")
        assert queue.require_job("behind").state == "waiting"
        queue.skip("fail")
        program.until(lambda: queue.require_job("behind").state == "completed", "the group goes on")
    program.signal(signal.SIGTERM)
    assert program.ends() == 0


def test_ageing_and_event_time_are_adopted(programs: Programs, url: str) -> None:
    for name, settings in (("a", {"priority_ageing": 1.5}), ("b", {"ordering": Ordering.event_time(0.001)})):
        with Queue(name, url, **settings) as queue:
            queue.add(1)
            program = programs.worker("--burst", queue=name)
            assert program.ends() == 0, program.log


def test_a_worker_that_is_there_first_leaves_the_settings_to_the_producer(programs: Programs, url: str) -> None:
    program = programs.worker("--health-port", "0", "--bind", "127.0.0.1")
    program.says("waiting until its producer adds the first job")
    program.until(lambda: program.get("/readyz")[0] == 200, "ready, since the server is there")
    with Queue("orders", url, group_concurrency=2) as queue:
        job = queue.add(1)
        program.until(lambda: queue.require_job(job.id).state == "completed", "the job ran")
    program.signal(signal.SIGTERM)
    assert program.ends() == 0


def test_a_worker_that_waits_for_its_producer_can_be_stopped(programs: Programs) -> None:
    program = programs.worker()
    program.says("waiting until its producer adds the first job")
    program.signal(signal.SIGINT)
    assert program.ends() == 0


def test_settings_that_were_given_make_the_queue(programs: Programs, url: str) -> None:
    program = programs.worker("--group-concurrency", "3")
    program.says("works on queue orders")
    with Queue("orders", url, group_concurrency=3) as queue:
        job = queue.add(1, group_id="g")
        program.until(lambda: queue.require_job(job.id).state == "completed", "the job ran")


def test_a_configured_worker(programs: Programs, url: str) -> None:
    """It ignores the queue and the server that the environment names."""
    programs.write(
        "app.py",
        "import tasks\n"
        "from groupmq import Queue, Worker\n"
        f"worker = Worker(Queue('orders', {url!r}, group_concurrency=2), tasks.handle, concurrency=3, name='mine')\n",
    )
    elsewhere = {"GROUPMQ_QUEUE": "other", "GROUPMQ_URL": "redis://127.0.0.1:1"}
    program = programs.start("worker", "app:worker", env=elsewhere)
    program.says("worker mine works on queue orders at .*, 3 at once")
    with Queue("orders", url, group_concurrency=2) as queue:
        job = queue.add(1)
        program.until(lambda: queue.require_job(job.id).state == "completed", "the job ran")
        program.until(lambda: [worker.name for worker in queue.get_workers()] == ["mine"], "it is registered")
    program.signal(signal.SIGTERM)
    assert program.ends() == 0


def test_plain_handlers_run_in_threads_or_processes(programs: Programs, queue: Queue) -> None:
    job = queue.add(1)
    assert programs.worker("--burst", spec="tasks:plain").ends() == 0
    other = queue.add(2)
    program = programs.worker("--burst", "--executor", "process", spec="tasks:plain")
    assert program.ends() == 0, program.log
    assert queue.require_job(job.id).state == queue.require_job(other.id).state == "completed"
    assert queue.require_job(other.id).return_value != program.pid


def test_the_settings_of_the_producer_count_and_its_attempts_unless_the_worker_has_its_own(
    programs: Programs, url: str
) -> None:
    with Queue("orders", url, max_attempts=2, backoff=0, keep_failed=5000) as web:
        first = web.add("fail")
        assert programs.worker("--burst").ends() == 0
        assert (web.require_job(first.id).attempts_made, web.require_job(first.id).max_attempts) == (2, 2)
        second = web.add("fail")
        assert programs.worker("--burst", "--max-attempts", "3").ends() == 0
        assert web.require_job(second.id).attempts_made == 3


def test_a_setting_that_differs_from_the_stored_one_is_refused_in_one_line(programs: Programs, queue: Queue) -> None:
    queue.add(1)
    program = programs.worker("--burst", "--job-timeout", "5m")
    assert program.ends() == 2
    assert "job_timeout is 30.0 there and 300.0 here" in program.log
    assert queue.get_waiting_count() == 1


def test_settings_of_the_command_line_make_a_queue_that_does_not_exist(programs: Programs, queue: Queue) -> None:
    program = programs.worker("--job-timeout", "5m", "--on-retry", "yield")
    program.says("works on")
    settings = queue.get_settings()
    assert (settings.job_timeout, settings.on_retry, settings.max_attempts) == (300, "yield", 3)


def test_what_is_kept_and_how_often_it_is_tried(programs: Programs, queue: Queue) -> None:
    queue.add_many([{"data": 1}, {"data": 2}, {"data": "fail"}])
    queue.reconfigure(keep_completed=1, keep_failed=0)
    words = ("--burst", "--keep-completed", "1", "--keep-failed", "0", "--max-attempts", "1")
    assert programs.worker(*words).ends() == 0
    counts = queue.get_job_counts()
    assert (counts.completed, counts.failed) == (1, 0)


def test_lines_of_json(programs: Programs, queue: Queue) -> None:
    job = queue.add("fail", group_id="g", max_attempts=2, backoff=0.01)
    program = programs.worker("--log-format", "json", "--log-level", "debug", "--name", "mine")
    program.until(lambda: queue.require_job(job.id).state == "failed", "the job failed")
    program.signal(signal.SIGTERM)
    assert program.ends() == 0
    lines = [json.loads(line) for line in program.log.splitlines()]
    assert {"time", "level", "logger", "message", "pid"} <= lines[0].keys()
    of_job = [line for line in lines if line.get("job") == job.id]
    assert [line["level"] for line in of_job] == ["debug", "warning", "debug", "error"]
    reason = "failed for good in attempt 2 of 2: ValueError: told to fail"
    assert of_job[-1]["message"].startswith(f"job '{job.id}' (queue 'orders', group 'g') {reason}")
    assert "Traceback" in of_job[-1]["message"]
    assert (of_job[-1]["group"], of_job[-1]["attempt"], of_job[-1]["worker"]) == ("g", 2, "mine")


def test_a_server_that_goes_away_for_too_long_is_3(programs: Programs) -> None:
    server = Server.start("valkey")
    try:
        with Queue("orders", server.url) as queue:
            queue.add(1)
        program = programs.start(
            "worker", "tasks:handle", "-q", "orders", "--redis-url", server.url, "--unreachable-timeout", "1"
        )
        program.says("works on queue")
        server.kill()
        assert program.ends() == 3
        assert "gave up: no answer for 1 s" in program.log
        assert "Traceback" not in program.log
    finally:
        server.stop()
