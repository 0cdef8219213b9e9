"""Metrics of queues: the collector in one's own program, and the exporter."""

from __future__ import annotations

import signal

import redis
from prometheus_client import CollectorRegistry, generate_latest

from groupmq.metrics import QueueCollector
from groupmq.sync import Queue
from tests.cli.programs import Programs
from tests.support.servers import Server
from tests.support.workers import one_kind

pytestmark = one_kind


def test_the_collector_in_ones_own_program(queue: Queue, url: str) -> None:
    queue.add_many([{"data": 1, "group_id": "g"}, {"data": 2, "group_id": "g"}, {"data": 3, "delay": 60}])
    registry = CollectorRegistry()
    with Queue("other", url) as other:
        registry.register(QueueCollector(queue, other))

        def value(name: str, **labels: str) -> float | None:
            return registry.get_sample_value(name, {"queue": "orders"} | labels)

        assert value("groupmq_up") == 1
        assert value("groupmq_jobs", state="waiting") == 2
        assert value("groupmq_jobs", state="delayed") == 1
        assert value("groupmq_groups") == value("groupmq_groups_ready") == 1
        assert value("groupmq_groups_due") == value("groupmq_groups_paused") == 0
        assert value("groupmq_jobs", state="waiting", queue="other") == 0
        oldest = value("groupmq_oldest_wait_seconds")
        assert oldest is not None
        assert oldest >= 0
        queue.pause()
        assert value("groupmq_paused") == 1
        assert value("groupmq_job_wait_seconds_count") == 0
        text = generate_latest(registry).decode()
    assert "group=" not in text
    assert 'groupmq_job_run_seconds_bucket{le="+Inf",queue="orders"}' in text


def test_registering_needs_no_server(session_server: Server) -> None:
    with Queue("orders", "redis://127.0.0.1:1") as queue:
        CollectorRegistry().register(QueueCollector(queue))


def test_the_histograms_count_what_ran(programs: Programs, queue: Queue) -> None:
    queue.add_many([{"data": n} for n in range(7)])
    assert programs.worker("--burst").ends() == 0
    registry = CollectorRegistry()
    registry.register(QueueCollector(queue))
    labels = {"queue": "orders"}
    assert registry.get_sample_value("groupmq_job_run_seconds_count", labels) == 7
    assert registry.get_sample_value("groupmq_job_wait_seconds_bucket", labels | {"le": "+Inf"}) == 7
    assert registry.get_sample_value("groupmq_jobs_processed_total", labels) == 7


def test_the_exporter(programs: Programs, queue: Queue, client: redis.Redis) -> None:
    queue.add(1)
    words = ("-q", "orders", "-q", "unmade", "--port", "0", "--bind", "127.0.0.1")
    program = programs.start("exporter", *words)
    status, text = program.get("/metrics")
    assert status == 200
    assert 'groupmq_jobs{queue="orders",state="waiting"} 1.0' in text
    assert 'groupmq_up{queue="unmade"} 1.0' in text
    assert 'groupmq_groups{queue="unmade"}' not in text
    assert client.keys("*unmade*") == []
    assert program.get("/livez")[0] == 200
    program.signal(signal.SIGTERM)
    assert program.ends() == 0


def test_a_server_that_is_down_is_a_metric(programs: Programs) -> None:
    server = Server.start("valkey", aof=True)
    try:
        with Queue("orders", server.url) as queue:
            queue.add(1)
        words = ("-q", "orders", "--redis-url", server.url, "--port", "0", "--bind", "127.0.0.1")
        program = programs.start("exporter", *words)
        assert 'groupmq_up{queue="orders"} 1.0' in program.get("/metrics")[1]
        server.kill()
        text = program.get("/metrics")[1]
        assert 'groupmq_up{queue="orders"} 0.0' in text
        assert 'groupmq_groups{queue="orders"}' not in text
        server.restart()
        assert 'groupmq_up{queue="orders"} 1.0' in program.get("/metrics")[1]
    finally:
        programs.close()
        server.stop()


def test_mistakes(programs: Programs) -> None:
    program = programs.start("exporter")
    assert program.ends() == 2
    assert "which queue?" in program.log
    program = programs.start("exporter", "-q", "a", "--redis-url", "nonsense")
    assert program.ends() == 2
    assert "redis: expected a URL" in program.log
