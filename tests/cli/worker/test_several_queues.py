"""One process for several queues, a queue whose handlers were decorated, and options from the environment."""

from __future__ import annotations

import re
import signal

from groupmq.sync import Queue
from tests.cli.operating import Command
from tests.cli.programs import Programs
from tests.support.workers import one_kind

pytestmark = one_kind
DECORATED = """
import os
from groupmq import Queue
queue = Queue("orders", os.environ["GROUPMQ_URL"])
bare = Queue("bare", os.environ["GROUPMQ_URL"])

@queue.process(concurrency=3)
async def handle(job):
    with open("ran", "a") as file:
        file.write(f"{job.data}\\n")
"""
OTHER = """
async def other(job):
    return "other"
"""


def test_one_process_serves_several_queues_with_common_slots(programs: Programs, queue: Queue, url: str) -> None:
    with Queue("mails", url) as mails:
        queue.add("work", group_id="g")
        mails.add("work", group_id="g")
        program = programs.worker("--queue", "mails", "-c", "2", "--burst")
        assert program.ends() == 0
        assert (queue.get_completed_count(), mails.get_completed_count()) == (1, 1)
    assert "all queues together have 2 slots" in program.log
    assert re.search(r"works on queue orders .*, 2 at once", program.log)
    assert re.search(r"works on queue mails .*, 2 at once", program.log)


def test_a_first_signal_drains_all_queues(programs: Programs, queue: Queue, url: str) -> None:
    with Queue("mails", url) as mails:
        jobs = [queue.add("wait"), mails.add("wait")]
        program = programs.start("worker", "tasks:handle", "--namespace", "orders", "-q", "mails", "-c", "2")
        program.until(lambda: len(programs.diary("start")) == 2, "both run")
        program.signal(signal.SIGTERM)
        program.says("stopping: 2 running jobs have 30 s to end")
        programs.open_gate()
        assert program.ends() == 0
        assert queue.require_job(jobs[0].id).state == mails.require_job(jobs[1].id).state == "completed"


def test_the_concurrency_may_come_from_the_environment(programs: Programs, queue: Queue) -> None:
    queue.add("work")
    program = programs.worker("--burst", env={"GROUPMQ_CONCURRENCY": "7"})
    assert program.ends() == 0
    assert ", 7 at once" in program.log


def test_a_queue_runs_the_handlers_that_were_decorated(programs: Programs, queue: Queue) -> None:
    programs.write("app.py", DECORATED)
    job = queue.add("decorated")
    program = programs.start("worker", "app:queue")
    program.until(lambda: queue.require_job(job.id).state == "completed", "the job ran")
    assert ", 3 at once" in program.log
    assert (programs.folder / "ran").read_text() == "decorated\n"
    program.signal(signal.SIGTERM)
    assert program.ends() == 0
    assert "never started" not in program.log


def test_decorated_handlers_start_with_their_queue_and_not_with_their_module(programs: Programs, queue: Queue) -> None:
    """Otherwise they would take jobs beside the handler that was asked for, and in a process that refuses its
    options."""
    programs.write("app.py", DECORATED + OTHER)
    job = queue.add("not for the decorated one")
    program = programs.start("worker", "app:queue", "-c", "4")
    assert program.ends() == 2
    assert program.log.strip().count("\n") == 0
    assert not (programs.folder / "ran").exists()
    assert queue.require_job(job.id).state == "waiting"
    assert queue.get_workers() == []
    program = programs.start("worker", "app:other", "--queue", "orders", "--burst")
    assert program.ends() == 0
    assert queue.require_job(job.id).return_value == "other"
    assert not (programs.folder / "ran").exists()


def test_a_queue_without_handlers_and_options_of_a_configured_queue_are_refused(programs: Programs) -> None:
    programs.write("app.py", DECORATED)
    program = programs.start("worker", "app:bare")
    assert program.ends() == 2
    assert "app:bare is a queue without handlers" in program.log
    program = programs.start("worker", "app:queue", "-c", "4")
    assert program.ends() == 2
    assert "app:queue is a configured Queue: --concurrency must be given where it is made" in program.log


def test_backoff_and_on_retry_of_the_command_line_count(programs: Programs, queue: Queue) -> None:
    program = programs.worker("--backoff", "10ms..20ms", "--on-retry", "yield")
    program.says("works on")
    job = queue.add("fail", group_id="g", max_attempts=3)
    program.until(lambda: queue.require_job(job.id).state == "failed", "all attempts were made")
    assert re.findall(r"next attempt starts in (0\.0\d+) s, and its group goes on", program.log)


def test_durations_have_units_everywhere(command: Command, queue: Queue) -> None:
    queue.add(1)
    assert command("monitor", "orders", "--once", "--interval", "100ms").code == 0
    refused = command("monitor", "orders", "--once", "--interval", "1ms")
    assert (refused.code, "at least 0.1 s" in refused.err) == (2, True)
    assert command("scheduler", "--once", "--interval", "500ms").code == 0
    assert command("recovery", "--once", "--failed-age", "7d", "--cleanup-interval", "2m").code == 0


def test_every_command_takes_the_queue_in_the_same_ways_and_refuses_an_unknown_one_alike(
    command: Command, queue: Queue
) -> None:
    queue.add(1, job_id="a")
    for words in (["job", "list"], ["check"], ["queue", "stats"], ["queue", "failures"], ["queue", "groups"]):
        assert command(*words, "orders").err == ""
        assert command(*words, "--namespace", "orders").err == ""
        told = command(*words, "nowhere")
        assert told.code == 1
        assert "queue 'nowhere' does not exist at" in told.err
