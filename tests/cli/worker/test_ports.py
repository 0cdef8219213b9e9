"""The answers of a worker to health probes and to Prometheus."""

from __future__ import annotations

import json
import os
import signal

import pytest
from prometheus_client.parser import text_string_to_metric_families

from groupmq.sync import Queue
from tests.cli.programs import Program, Programs, children
from tests.support.servers import Server, free_port
from tests.support.workers import one_kind

pytestmark = one_kind


HEALTH = ("--bind", "127.0.0.1", "--health-port", "0")
METRICS = ("--bind", "127.0.0.1", "--metrics-port", "0")


def values(program: Program) -> dict[tuple[str, ...], float]:
    """Samples by name and the values of their labels, in the order of the labels' names."""
    status, text = program.get("/metrics")
    assert status == 200
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            assert "group" not in sample.labels
            found[sample.name, *(value for _, value in sorted(sample.labels.items()))] = sample.value
    return found


@pytest.mark.parametrize("everywhere", [False, True])
def test_ports_are_served_on_this_machine_only_unless_somebody_says_otherwise(
    programs: Programs, queue: Queue, everywhere: bool
) -> None:
    queue.pause()
    env = {"GROUPMQ_BIND": "0.0.0.0"} if everywhere else None
    program = programs.worker("--health-port", "0", "--metrics-port", "0", env=env)
    address = "0.0.0.0" if everywhere else "127.0.0.1"
    program.says(rf"serving .*/livez.* at http://{address}:\d+")
    program.says(rf"serving .*/metrics.* at http://{address}:\d+")


@pytest.mark.parametrize("words", [(), ("--processes", "2")], ids=["alone", "supervised"])
def test_ready_while_the_server_answers(programs: Programs, words: tuple[str, ...]) -> None:
    server = Server.start("valkey", aof=True)
    programs.url = server.url
    try:
        with Queue("orders", server.url) as queue:
            queue.pause()
        program = programs.worker(*HEALTH, *words)
        program.until(lambda: program.get("/readyz")[0] == 200, "ready")
        assert program.get("/livez")[0] == program.get("/healthz")[0] == 200
        server.kill()
        program.until(lambda: program.get("/readyz")[0] == 503, "not ready any more")
        assert program.get("/livez")[0] == 200
        server.restart()
        program.until(lambda: program.get("/readyz")[0] == 200, "ready again", 60)
        _, text = program.get("/livez")
        processes = json.loads(text)["processes"]
        assert {one["state"] for one in processes} == {"running"}
        assert {one["pid"] for one in processes} == set(children(program.pid) if words else [program.pid])
    finally:
        programs.close()
        server.stop()


@pytest.mark.parametrize("words", [(), ("--processes", "1")], ids=["alone", "supervised"])
def test_not_alive_while_the_loop_hangs(programs: Programs, queue: Queue, words: tuple[str, ...]) -> None:
    queue.add("hang")
    queue.reconfigure(job_timeout=0.5)
    program = programs.worker(*HEALTH, *words)
    program.until(lambda: programs.diary("start"), "the job runs")
    program.until(lambda: program.get("/livez")[0] == 503, "the probe reports that the loop hangs")
    programs.open_gate()
    program.until(lambda: program.get("/livez")[0] == 200, "the probe reports that the loop runs again")


def test_not_ready_while_draining(programs: Programs, queue: Queue) -> None:
    queue.add("wait")
    program = programs.worker(*HEALTH)
    program.until(lambda: programs.diary("start"), "the job runs")
    assert program.get("/readyz")[0] == 200
    program.signal(signal.SIGTERM)
    program.until(lambda: program.get("/readyz")[0] == 503, "not ready")
    assert program.get("/livez")[0] == 200
    programs.open_gate()
    assert program.ends() == 0


def test_a_page_that_is_not_there(programs: Programs, queue: Queue) -> None:
    queue.pause()
    program = programs.worker(*HEALTH)
    port = program.port("/livez")
    import urllib.error
    import urllib.request

    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/drain", timeout=20)
    with raised.value as answer:
        assert answer.code == 404
        assert b"/readyz" in answer.read()


def test_metrics_of_the_worker_and_its_queue(programs: Programs, queue: Queue) -> None:
    queue.add_many([{"data": 1}, {"data": 2, "group_id": "g"}, {"data": "fail", "max_attempts": 1}])
    program = programs.worker(*METRICS, "-c", "4")
    program.until(lambda: queue.get_job_counts().total == 0, "all jobs ended")
    program.until(lambda: values(program).get(("groupmq_worker_completed_total", "0", "orders")) == 2, "counted")
    found = values(program)
    assert found["groupmq_up", "orders"] == 1
    assert found["groupmq_jobs", "orders", "completed"] == 2
    assert found["groupmq_jobs_processed_total", "orders"] == 2
    assert found["groupmq_jobs_failed_total", "orders"] == 1
    assert found["groupmq_worker_failed_total", "0", "orders"] == 1
    assert found["groupmq_worker_concurrency", "0", "orders"] == 4
    assert found["groupmq_worker_ready", "0", "orders"] == 1
    assert found["groupmq_workers", "orders"] == 1
    assert found["groupmq_worker_slots", "orders"] == 4


def test_metrics_of_supervised_processes_come_from_one_port(programs: Programs, queue: Queue) -> None:
    queue.add_many([{"data": n} for n in range(20)])
    program = programs.worker(*METRICS, "--processes", "2")

    def completed() -> float:
        found = values(program)
        return sum(value for name, value in found.items() if name[0] == "groupmq_worker_completed_total")

    program.until(lambda: completed() == 20, "all jobs are counted")
    victim = children(program.pid)[0]
    os.kill(victim, signal.SIGKILL)

    def restarts() -> float:
        found = values(program)
        return sum(value for name, value in found.items() if name[0] == "groupmq_worker_restarts_total")

    program.until(lambda: restarts() == 1, "the restart is counted")
    assert values(program)["groupmq_jobs_processed_total", "orders"] == 20


def test_metrics_and_health_on_one_port(programs: Programs, queue: Queue) -> None:
    queue.pause()
    port = str(free_port())
    program = programs.worker("--bind", "127.0.0.1", "--health-port", port, "--metrics-port", port)
    program.says("works on queue")
    assert program.port("/metrics") == program.port("/livez") == int(port)
    assert values(program)["groupmq_paused", "orders"] == 1


def test_metrics_of_a_configured_worker(programs: Programs, url: str) -> None:
    programs.write(
        "app.py",
        "import redis.asyncio, tasks\n"
        "from groupmq import Queue, Worker\n"
        f"client = redis.asyncio.Redis.from_url({url!r})\n"
        "worker = Worker(Queue('orders', client, exclusive=True), tasks.handle)\n",
    )
    program = programs.start("worker", "app:worker", *METRICS)
    program.says("works on queue orders")
    program.until(lambda: ("groupmq_jobs", "orders", "waiting") in values(program), "the metrics name the queue")
