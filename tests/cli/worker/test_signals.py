"""The first signal drains, the second gives running jobs back, the third exits."""

from __future__ import annotations

import signal

import pytest

from groupmq.sync import Queue
from tests.cli.programs import Program, Programs, children, is_alive
from tests.support.workers import one_kind

pytestmark = one_kind


both_ways = pytest.mark.parametrize("words", [(), ("--processes", "2")], ids=["alone", "supervised"])


@both_ways
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_drains(
    programs: Programs, queue: Queue, words: tuple[str, ...], number: signal.Signals
) -> None:
    running, waiting = queue.add("wait", group_id="g"), queue.add("wait", group_id="g")
    program = programs.worker(*words)
    program.until(lambda: programs.diary("start"), "the first job runs")
    program.signal(number)
    program.says("stopping")
    assert program.process.poll() is None
    programs.open_gate()
    assert program.ends() == 0
    assert queue.require_job(running.id).state == "completed"
    assert queue.require_job(waiting.id).state == "waiting"
    assert len(programs.diary("start")) == 1


@both_ways
def test_the_second_signal_gives_running_jobs_back(programs: Programs, queue: Queue, words: tuple[str, ...]) -> None:
    job = queue.add("wait", group_id="g")
    program = programs.worker(*words)
    program.until(lambda: programs.diary("start"), "the job runs")
    program.signal(signal.SIGTERM)
    program.says("stopping: 1 running job has 30 s to end; signal again to give it back now")
    program.signal(signal.SIGTERM)
    assert program.ends() == 0
    assert f"job '{job.id}' (queue 'orders', group 'g') did not end before worker" in program.log
    found = queue.require_job(job.id)
    assert (found.state, found.attempts_made) == ("waiting", 0)
    assert queue.get_workers() == []


def test_the_drain_ends_after_its_time(programs: Programs, queue: Queue) -> None:
    job = queue.add("wait")
    program = programs.worker("--drain-timeout", "0.2")
    program.until(lambda: programs.diary("start"), "the job runs")
    program.signal(signal.SIGTERM)
    assert program.ends() == 0
    assert queue.require_job(job.id).state == "waiting"


def test_the_third_signal_exits_though_the_loop_hangs(programs: Programs, queue: Queue) -> None:
    queue.add("hang", max_attempts=1)
    queue.reconfigure(job_timeout=0.5)
    program = programs.worker()
    program.until(lambda: programs.diary("start"), "the job runs")
    for _ in range(3):
        # Pending signals of one kind are merged into one, so more are sent until the process ends.
        program.signal(signal.SIGTERM)
    program.until(lambda: program.process.poll() is not None or _signal(program), "the program ends")
    assert program.ends() == 128 + signal.SIGTERM
    _until_taken_back(program, queue)


def _signal(program: Program) -> bool:
    program.signal(signal.SIGTERM)
    return False


def _until_taken_back(program: Program, queue: Queue) -> None:
    program.until(lambda: queue.check_stalled_jobs() or queue.get_failed_count(), "the lease has ended")


def test_the_third_signal_ends_supervisor_and_children(programs: Programs, queue: Queue) -> None:
    queue.add("hang", max_attempts=1)
    queue.reconfigure(job_timeout=0.5)
    program = programs.worker("--processes", "2")
    program.until(lambda: programs.diary("start"), "the job runs")
    there = children(program.pid)
    program.until(lambda: program.process.poll() is not None or _signal(program), "the program ends")
    assert program.ends() == 128 + signal.SIGTERM
    program.until(lambda: not any(map(is_alive, there)), "the children have ended")
    _until_taken_back(program, queue)


def test_a_thread_that_a_handler_left_behind_does_not_keep_the_process(programs: Programs, queue: Queue) -> None:
    programs.write(
        "threads.py",
        "import asyncio, tasks, threading\n"
        "async def handle(job):\n"
        "    tasks.note('start', job)\n"
        "    await asyncio.to_thread(threading.Event().wait)\n",
    )
    queue.add(1)
    program = programs.worker(spec="threads:handle")
    program.until(lambda: programs.diary("start"), "the job runs")
    program.signal(signal.SIGTERM)
    program.says("stopping: 1 running job has 30 s to end; signal again to give it back now")
    program.signal(signal.SIGTERM)
    assert program.ends() == 0
    assert queue.get_waiting_count() == 1
