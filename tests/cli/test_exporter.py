"""Metrics of queues: the collector in a user's program, and the exporter."""

from __future__ import annotations

import re
import signal

import redis
import yaml
from prometheus_client import CollectorRegistry, generate_latest

from groupmq.core.views import HELD_REASONS
from groupmq.metrics import QueueCollector
from groupmq.sync import Queue
from tests.cli.blocking import blocked
from tests.cli.programs import ROOT, Programs
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
        assert value("groupmq_groups_parked") == value("groupmq_groups_due") == value("groupmq_groups_paused") == 0
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


def samples(queue: Queue) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(QueueCollector(queue))
    return registry


def test_a_held_group_is_distinguished_from_jobs_that_could_start(queue: Queue) -> None:
    registry, labels = samples(queue), {"queue": "orders"}
    assert registry.get_sample_value("groupmq_longest_held_seconds", labels) == 0
    blocked(queue, "customer:7", minutes=10)
    assert registry.get_sample_value("groupmq_oldest_wait_seconds", labels) == 0
    held = registry.get_sample_value("groupmq_longest_held_seconds", labels)
    assert held is not None
    assert held >= 600
    reasons = {
        reason: registry.get_sample_value("groupmq_longest_held_reason", labels | {"reason": reason})
        for reason in HELD_REASONS
    }
    assert reasons == dict.fromkeys(HELD_REASONS, 0) | {"running": 1}
    assert "customer:7" not in generate_latest(registry).decode()


def test_a_group_that_waits_for_a_decision_is_counted_and_raises_the_shipped_alert(queue: Queue) -> None:
    registry, labels = samples(queue), {"queue": "orders"}
    names = "groupmq_groups_blocked", "groupmq_longest_blocked_seconds"
    assert [registry.get_sample_value(name, labels) for name in names] == [0, 0]
    queue.add(1, group_id="user:7", job_id="charge", on_failed="hold")
    queue.fail("charge", "declined")
    assert registry.get_sample_value(names[0], labels) == 1
    later = registry.get_sample_value(names[1], labels)
    assert later is not None
    (rules,) = yaml.safe_load_all((ROOT / "contrib/prometheus/alerts.yaml").read_text())
    rule = next(one for one in rules["groups"][0]["rules"] if one["alert"] == "GroupmqGroupBlocked")
    assert rule["expr"] == f"{names[1]} > 300"
    queue.skip("charge")
    assert [registry.get_sample_value(name, labels) for name in names] == [0, 0]


def test_a_customer_who_is_blocked_for_ten_minutes_raises_the_shipped_alert(queue: Queue) -> None:
    """The test evaluates the shipped rule itself. A group that was held for longer is paused, which must not hide the
    other one."""
    (rules,) = yaml.safe_load_all((ROOT / "contrib/prometheus/alerts.yaml").read_text())
    rule = next(one for one in rules["groups"][0]["rules"] if one["alert"] == "GroupmqGroupHeld")
    match = re.fullmatch(r"(\w+) > (\d+)", rule["expr"])
    assert match is not None, rule["expr"]
    metric, limit = match.groups()
    minutes = int(rule["for"].removesuffix("m"))
    assert int(limit) + 60 * minutes <= 600, "the alert must fire within ten minutes"

    registry, labels = samples(queue), {"queue": "orders"}

    def is_true() -> bool:
        held = registry.get_sample_value(metric, labels)
        assert held is not None
        return held > int(limit)

    assert not is_true()
    blocked(queue, "vacation", minutes=60, prefix="old-")
    blocked(queue, "customer:7", minutes=10 - minutes + 0.1)
    queue.pause_group("vacation")
    assert is_true()
    queue.pause_group("customer:7")
    assert not is_true(), "a person has paused the group on purpose"
    old, reason = "groupmq_longest_held_seconds", "groupmq_longest_held_reason"
    assert (registry.get_sample_value(old, labels) or 0) >= 3600, "the metric of all groups includes paused ones"
    assert registry.get_sample_value(reason, labels | {"reason": "paused"}) == 1


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
