"""Jobs are exported from one queue as JSON lines and imported into another with all their options."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import groupmq
from groupmq import Backoff, Job, Worker
from groupmq.sync import Queue
from tests.cli.operating import Command
from tests.support.workers import one_kind

pytestmark = one_kind
KEPT = "id group_id data priority order_ms max_attempts timeout backoff on_retry run_at headers".split()


class Tenant:
    def adding(self, headers: dict[str, str]) -> None:
        headers["tenant"] = "t1"


def rich_queue(url: str) -> Queue:
    """A queue whose jobs use every option that is stored with a job."""
    queue = Queue("orders", url, middleware=[Tenant()])
    queue.add({"n": 1}, group_id="g", job_id="last", priority=5)
    queue.add({"n": 2}, group_id="g", job_id="second", order_ms=10, backoff=Backoff.exponential(base=1, jitter=0))
    queue.add({"n": 3}, group_id="g", job_id="first", order_ms=-10, timeout=2.5, max_attempts=7, on_retry="yield")
    queue.add_many([{"data": n, "group_id": "same-moment", "job_id": f"m{n}"} for n in range(20)])
    queue.add("späßig \u2028", job_id="alone")
    queue.add(None, job_id="late", run_at=4_102_444_800, group_id="g")
    return queue


def fields(queue: Queue, job_id: str) -> dict[str, Any]:
    job = queue.require_job(job_id)
    return {name: getattr(job, name) for name in KEPT}


def order_of_runs(url: str, name: str) -> list[str]:
    ran: list[str] = []

    async def work() -> None:
        async with groupmq.Queue(name, url) as queue:
            await Worker(queue, handle).run(burst=True)

    def handle(job: Job) -> None:
        if job.group_id:
            ran.append(job.id)

    asyncio.run(work())
    return ran


def test_what_was_exported_is_imported_the_same(command: Command, url: str, tmp_path: Path) -> None:
    file = str(tmp_path / "jobs.jsonl")
    with rich_queue(url) as queue, Queue("copy", url) as copy:
        assert command("job", "export", "--output", file).out == f"exported 25 jobs to {file}\n"
        assert command("job", "import", "--queue", "copy", "--check", file).out == "25 jobs, no mistake\n"
        assert copy.get_job_counts().total == 0
        assert command("job", "import", "--queue", "copy", file).out == "imported 25 jobs\n"
        for line in Path(file).read_text(encoding="utf-8").split("\n")[:-1]:
            job_id = json.loads(line)["id"]
            assert fields(copy, job_id) == fields(queue, job_id)
        assert copy.get_delayed_jobs() == ["late"]
    assert order_of_runs(url, "copy") == order_of_runs(url, "orders")


def test_a_pipe_from_one_queue_to_another(command: Command, url: str) -> None:
    with rich_queue(url):
        lines = command.program("job", "export", "--group", "g", "--state", "waiting")
        assert lines.out.count("\n") == 3
        assert command.program("job", "import", "--queue", "copy", "-", stdin=lines.out).out == "imported 3 jobs\n"


def test_new_ids_let_the_same_jobs_come_again(command: Command, stocked: Queue) -> None:
    lines = command("job", "export", "--state", "failed").out
    assert command("job", "import", "-", stdin=lines).out == "imported 0 jobs; 2 ids existed already\n"
    assert command("job", "import", "--new-ids", "-", stdin=lines, NO_COLOR="1").out == "imported 2 jobs\n"
    assert stocked.get_job_counts().waiting == 5


def test_what_list_says_in_json_can_be_imported(command: Command, stocked: Queue) -> None:
    jobs = command("job", "list", "--json").json
    lines = "\n".join(json.dumps(job) for job in jobs)
    assert command("job", "import", "--queue", "copy", "-", stdin=lines).out == "imported 7 jobs\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2: not JSON"),
        ("[1]", "line 2: expected a JSON object"),
        ('{"id": "x"}', "line 2: data is missing"),
        ('{"data": 1, "grp": "x"}', "line 2: unknown 'grp'"),
        ('{"data": 1, "priority": "high"}', "line 2: priority: expected an integer"),
        ('{"data": 1, "run_at": "soon"}', "line 2: 'soon' is not a time"),
        ('{"data": 1, "backoff": {"bas": 1}}', "line 2: backoff: expected seconds, or base"),
        ('{"data": 1, "headers": {"a": 1}}', "line 2: headers: expected an object of strings"),
        ('{"data": 1, "group_id": 7}', "line 2: group_id: expected a non-empty string"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_added(command: Command, orders: Queue, line: str, said: str) -> None:
    answer = command("job", "import", "-", stdin=f'{{"data": 1}}\n{line}\n').line(2)
    assert said in answer
    assert "nothing was added" in answer
    assert orders.get_job_counts().total == 0


def test_a_file_that_is_no_text_is_refused(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "jobs"
    file.write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in command("job", "import", str(file)).line(2)


@pytest.mark.parametrize("delay", [None, 7200])
def test_a_job_that_expires_does_so_at_the_same_time_on_the_other_side(
    command: Command, url: str, tmp_path: Path, delay: int | None
) -> None:
    file = str(tmp_path / "jobs.jsonl")
    with Queue("orders", url) as here:
        here.add(1, job_id="brief", ttl=3600, delay=delay)
        expires = here.require_job("brief").expires_at
    assert command("job", "export", "--queue", "orders", "--output", file).code == 0
    assert command("job", "import", "--queue", "elsewhere", file).code == 0
    with Queue("elsewhere", url) as there:
        found = there.require_job("brief").expires_at
    assert expires is not None
    assert found is not None
    assert abs(found - expires) < timedelta(seconds=60)


def test_a_job_that_has_expired_meanwhile_fails_as_expired(command: Command, url: str, tmp_path: Path) -> None:
    file = tmp_path / "jobs.jsonl"
    file.write_text('{"data": 1, "id": "late", "expires_at": "2020-01-01T00:00:00+00:00"}\n')
    assert command("job", "import", "--queue", "orders", str(file)).code == 0
    assert order_of_runs(url, "orders") == []
    with Queue("orders", url) as queue:
        assert "expired" in str(queue.require_job("late").failed_reason)
