"""Groups that a failed job blocks are shown and unblocked from the command line."""

from __future__ import annotations

import asyncio

import pytest

from groupmq import FailJob, Job, Worker
from groupmq import Queue as AsyncQueue
from groupmq.sync import Queue
from tests.cli.operating import Command, golden
from tests.support.workers import one_kind

pytestmark = one_kind


@pytest.fixture
def stopped(queue: Queue) -> Queue:
    """A queue with one group that the job `charge` blocks, and two jobs behind it."""
    for job_id in ("charge", "ship", "bill"):
        queue.add(job_id, job_id=job_id, group_id="user:1", on_failed="hold")
    queue.fail("charge", "declined")
    return queue


def test_blocked_groups_are_listed_with_the_job_that_blocks_them(command: Command, stopped: Queue) -> None:
    golden("queue-groups-blocked.txt", command("queue", "groups", "orders", "--blocked").out)
    (found,) = command("queue", "groups", "orders", "--blocked", "--json").json
    assert (found["id"], found["blocked_by"], found["waiting"]) == ("user:1", "charge", 2)
    stopped.skip("charge")
    assert command("queue", "groups", "orders", "--blocked").out == "no group is blocked by a failed job\n"
    refused = command("queue", "groups", "orders", "--blocked", "--group", "user:1")
    assert (refused.code, "not both" in refused.err) == (2, True)


def test_stats_check_and_status_name_what_is_blocked(command: Command, stopped: Queue) -> None:
    stats = command("queue", "stats", "orders")
    assert "1 blocked" in stats.out
    assert "queue groups --blocked names it" in stats.out
    told = command("queue", "stats", "orders", "--json").json
    assert (told["groups"]["blocked"], told["longest_blocked"] >= 0) == (1, True)
    (found,) = [one for one in command("check", "orders", "--json").json["checks"] if one["name"] == "blocked groups"]
    assert (found["status"], "by job 'charge'" in found["detail"]) == ("warn", True)
    assert "blocks its group" in command("job", "status", "charge").out


def test_a_job_that_blocks_its_group_is_skipped_and_the_group_goes_on(command: Command, stopped: Queue) -> None:
    answer = command("job", "skip", "charge")
    assert (answer.code, answer.out) == (0, "charge: given up; its group goes on when no other job blocks it\n")
    assert (stopped.get_group("user:1").state, stopped.get_failed_count()) == ("ready", 1)
    again = command("job", "skip", "charge")
    assert again.code == 1
    assert "is failed but blocks no group, expected failed, blocking its group" in again.err


def test_a_job_is_added_that_blocks_its_group_and_says_so_wherever_it_goes(command: Command, queue: Queue) -> None:
    added = ["job", "add", "orders", "--payload", "1", "--id", "a", "--group", "g"]
    assert command(*added, "--on-failed", "hold", "--on-retry", "yield", "--backoff", "1s..5m").code == 0
    job = queue.require_job("a")
    assert (job.on_failed, job.on_retry) == ("hold", "yield")
    assert job.backoff is not None
    assert (job.backoff.base, job.backoff.max) == (1, 300)
    exported = command("job", "export").out
    assert '"on_failed": "hold"' in exported
    queue.remove("a")
    assert command("job", "import", "-", stdin=exported).code == 0
    assert queue.require_job("a").on_failed == "hold"


def test_a_dry_run_of_a_retry_names_the_jobs_that_others_have_overtaken(command: Command, url: str) -> None:
    async def handle(job: Job) -> None:
        if job.data == "bad":
            raise FailJob("declined")

    async def work() -> None:
        async with AsyncQueue("orders", url) as queue:
            await queue.add_many({"data": name, "job_id": name, "group_id": "user:1"} for name in ("bad", "good"))
            await Worker(queue, handle).run(burst=True)

    asyncio.run(work())
    answer = command("job", "retry", "--all", "--dry-run")
    assert answer.out.splitlines() == [
        "1 failed job of 1 group would wait to run again; nothing was changed",
        "at least 1 job would run late, because later jobs of the same group have run already: bad",
    ]
    told = command("job", "retry", "--all", "--dry-run", "--json").json
    assert (told["overtaken"], told["overtaken_sample"]) == (1, ["bad"])


def test_resuming_a_blocked_group_gives_up_what_blocks_it(command: Command, stopped: Queue) -> None:
    assert command("queue", "resume", "orders", "--group", "user:1").code == 0
    assert stopped.get_group("user:1").state == "ready"
