"""Purge, retry, clean, import and repair work in bounded steps; Ctrl-C ends them between two steps."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import groupmq
from groupmq import Job, Worker
from groupmq.client.queue.matching import STEP
from groupmq.protocol.commands import CHUNK
from groupmq.sync import Queue
from groupmq.sync.connection.connections import BlockingConnection
from tests.cli.operating import Command
from tests.support.fleet import Fleet
from tests.support.waiting import wait_until
from tests.support.workers import one_kind

pytestmark = one_kind
MANY = 2500


@pytest.fixture
def interrupt(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, int], None]]:
    """Press Ctrl-C while the n-th call of a script is under way, counted from 1."""
    # A process that a shell has started in the background ignores SIGINT: restore the handler.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    real, seen = BlockingConnection.call, [0]
    wanted: list[Any] = []

    def call(self: BlockingConnection, call: Any, *args: Any) -> Any:
        if wanted and call.script == wanted[0]:
            seen[0] += 1
            if seen[0] == wanted[1]:
                os.kill(os.getpid(), signal.SIGINT)
        return real(self, call, *args)

    monkeypatch.setattr(BlockingConnection, "call", call)

    def at(script: str, n: int) -> None:
        wanted[:] = [script, n]

    yield at
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler


def fill(queue: Queue, many: int = MANY) -> None:
    queue.add_many([{"data": n, "group_id": f"g{n % 7}", "job_id": f"job-{n}"} for n in range(many)])


def fail_all(url: str) -> None:
    async def work() -> None:
        async with groupmq.Queue("orders", url) as queue:
            await Worker(queue, refuse, concurrency=50).run(burst=True)

    async def refuse(job: Job) -> None:
        raise groupmq.FailJob("not today")

    asyncio.run(work())


def test_purge_ends_between_two_steps_and_goes_on_later(
    command: Command, orders: Queue, interrupt: Callable[[str, int], None]
) -> None:
    fill(orders)
    interrupt("remove", 2)
    stopped = command("queue", "purge", "--yes")
    assert stopped.code == 130
    assert f"interrupted: {2 * CHUNK:,} of {MANY:,} removed; run it again to continue" in stopped.err
    assert orders.get_job_counts().waiting == MANY - 2 * CHUNK
    assert command("queue", "purge", "--yes", "--json").json["removed"] == MANY - 2 * CHUNK
    assert orders.get_job_counts().total == 0


def test_an_interrupted_purge_says_so_in_json(
    command: Command, orders: Queue, interrupt: Callable[[str, int], None]
) -> None:
    fill(orders, CHUNK + 1)
    interrupt("remove", 1)
    stopped = command("queue", "purge", "--yes", "--json")
    assert stopped.code == 130
    assert stopped.json == {"queue": "orders", "removed": CHUNK, "interrupted": True}


def test_retry_of_all_failed_jobs_is_interrupted_and_goes_on(
    command: Command, orders: Queue, url: str, interrupt: Callable[[str, int], None]
) -> None:
    fill(orders, 3 * STEP)
    fail_all(url)
    interrupt("redrive", 1)
    assert f"interrupted: {STEP} of {3 * STEP} retried" in command("job", "retry", "--all").err
    counts = orders.get_job_counts()
    assert (counts.waiting, counts.failed) == (STEP, 2 * STEP)
    left = [job.group_id for job in orders.get_failed_jobs(limit=MANY)].count("g1")
    assert command("job", "retry", "--all", "--failed", "--group", "g1", "--json").json["retried"] == left
    assert command("job", "retry", "--all", "--failed").out == f"{2 * STEP - left} jobs wait to run again\n"
    assert orders.get_job_counts().failed == 0


def test_retry_of_all_that_match_says_first_how_many_there_are(command: Command, orders: Queue, url: str) -> None:
    fill(orders, 30)
    fail_all(url)
    chosen = ("job", "retry", "--all", "--error", "FailJob", "--text", "NOT TODAY", "--newer", "1h", "--limit", "20")
    told = command(*chosen, "--dry-run").out
    assert told == "20 failed jobs of 7 groups would wait to run again; nothing was changed\n"
    foretold = {"queue": "orders", "matched": 20, "groups": 7, "skipped": 0, "retried": 0}
    unharmed = {"overtaken": 0, "overtaken_sample": []}
    assert command(*chosen, "--dry-run", "--json").json == foretold | unharmed
    assert orders.get_job_counts().failed == 30
    assert command(*chosen, "--rate", "1000", "--json").json == {**foretold, "retried": 20, "interrupted": False}
    assert orders.get_job_counts().failed == 10
    assert command("job", "retry", "--all", "--error", "Other", "--older", "0").out == "0 jobs wait to run again\n"
    assert command("job", "retry", "--all", "--older", "1h").out == "0 jobs wait to run again\n"


def test_clean_is_interrupted_and_goes_on(
    command: Command, orders: Queue, url: str, interrupt: Callable[[str, int], None]
) -> None:
    fill(orders)
    fail_all(url)
    interrupt("clean", 1)
    assert f"interrupted: {CHUNK:,} removed" in command("queue", "clean", "--state", "failed", "--older-than", "0").err
    assert orders.get_job_counts().failed == MANY - CHUNK
    done = command("queue", "clean", "--state", "failed", "--older-than", "0", "--limit", "1200", "--json")
    assert done.json["removed"] == 1200


def test_clean_takes_only_what_is_old_enough(command: Command, stocked: Queue) -> None:
    assert command("queue", "clean", "--older-than", "1h", "--json").json["removed"] == 0
    assert command("queue", "clean", "--older-than", "0", "--json").json["removed"] == 1
    kept = command("queue", "clean", "--older-than", "1h", "--state", "waiting", "--yes", "--json")
    assert kept.json["removed"] == 0


def test_an_import_that_was_interrupted_is_run_again(
    command: Command, orders: Queue, tmp_path: Path, interrupt: Callable[[str, int], None]
) -> None:
    file = tmp_path / "jobs.jsonl"
    file.write_text("".join(json.dumps({"id": f"j{n}", "data": n}) + "\n" for n in range(MANY)))
    interrupt("add", -(-500 // CHUNK) + 1)  # in the second step of 500
    assert f"interrupted: 1,000 of {MANY:,} imported" in command("job", "import", str(file)).err
    assert orders.get_job_counts().waiting == 1000
    assert command("job", "import", str(file)).out == "imported 1,500 jobs; 1,000 ids existed already\n"
    assert orders.get_job_counts().waiting == MANY


def test_repair_is_interrupted_and_mends_another_time(
    command: Command, orders: Queue, interrupt: Callable[[str, int], None]
) -> None:
    fill(orders, 10)
    interrupt("repair", 3)
    assert command("queue", "repair").code == 130
    assert command("queue", "repair", "--json").json["mended"] == {}


def test_active_jobs_are_removed_only_by_force(command: Command, orders: Queue, url: str) -> None:
    orders.add({"do": "work", "seconds": 30}, job_id="runs", group_id="g")
    orders.add({"do": "work"}, job_id="waits", group_id="g")
    with Fleet(url, "orders", job_timeout=60, close_timeout=0.1) as fleet:
        fleet.start()
        wait_until(lambda: orders.get_job_counts().active == 1, "the job runs")
        assert "--force removes it while it runs" in command("job", "remove", "runs").line(1)
        assert command("queue", "purge", "--all", "--yes", "--json").json["removed"] == 1
        assert orders.get_active_jobs() == ["runs"]
        assert "on orders-" in command("job", "list", "--state", "active").out
        forced = command("queue", "purge", "--state", "active", "--force", "--yes", "--json")
        assert forced.json["removed"] == 1
        assert orders.get_job_counts().total == 0


def test_stats_are_the_librarys_counts_while_load_runs(command: Command, orders: Queue, url: str) -> None:
    many = 600
    with Fleet(url, "orders", keep_completed=many) as fleet:
        fleet.start(2)
        orders.add_many([{"data": {"seconds": 0.005}, "group_id": f"g{n % 20}"} for n in range(many)])
        while True:
            before = orders.get_job_counts()
            told = command("queue", "stats", "--json").json["counts"]
            after = orders.get_job_counts()
            # The counts describe the queue at one instant: no job is missing or counted twice.
            assert told["active"] + told["waiting"] + told["completed"] == many
            assert told["total"] == told["active"] + told["waiting"] + told["delayed"]
            assert before.completed <= told["completed"] <= after.completed
            assert before.waiting >= told["waiting"] >= after.waiting
            if before == after:
                assert told == command("queue", "stats", "--json").json["counts"] or after.total
            if told["completed"] == many:
                break
        assert told == {
            "active": 0,
            "waiting": 0,
            "delayed": 0,
            "completed": many,
            "failed": 0,
            "total": 0,
            "unique_groups": 0,
        }
