"""Worker processes that die, keep dying, are left alone, or have their source changed."""

from __future__ import annotations

import os
import re
import signal

from groupmq.sync import Queue
from tests.cli.programs import Program, Programs, children, is_alive
from tests.support.workers import one_kind

pytestmark = one_kind


def working(program: Program, n: int) -> list[int]:
    """Wait until `n` processes work. Returns their pids."""

    def pids() -> list[int]:
        ready = {int(pid) for pid in re.findall(r"\[(\d+)\] groupmq.cli: worker .* works on", program.log)}
        return sorted(ready & set(children(program.pid)))

    program.until(lambda: len(pids()) == n, f"{n} processes work")
    return pids()


def test_a_killed_process_is_started_again(programs: Programs, queue: Queue) -> None:
    job = queue.add("wait", group_id="g")
    queue.reconfigure(job_timeout=0.5)
    program = programs.worker("--processes", "2", "--name", "mine")
    before = working(program, 2)
    program.until(lambda: programs.diary("start"), "the job runs")
    victim = programs.diary("start")[0]["pid"]
    assert victim in before
    os.kill(victim, signal.SIGKILL)
    program.says(r"process \d was killed by SIGKILL after .* s; starting again in 0.25 s")
    after = working(program, 2)
    assert len(set(before) & set(after)) == 1
    programs.open_gate()
    program.until(lambda: queue.require_job(job.id).state == "completed", "the job ran again")
    names = sorted(worker.name for worker in queue.get_workers())
    assert set(names) <= {"mine-0", "mine-1"}
    program.signal(signal.SIGTERM)
    assert program.ends() == 0


def test_what_a_killed_process_was_doing_goes_back_at_once(programs: Programs, queue: Queue) -> None:
    """Its jobs, and no others, go back long before their leases expire, with an attempt used as after a stall."""
    victims = [queue.add("wait", group_id="g") for _ in range(2)]
    other = queue.add("wait", group_id="other")
    queue.reconfigure(job_timeout=600)
    program = programs.worker("--processes", "2")
    working(program, 2)
    program.until(lambda: len(programs.diary("start")) == 2, "both groups run")
    runs = {line["job"]: line["pid"] for line in programs.diary("start")}
    os.kill(runs[victims[0].id], signal.SIGKILL)
    program.says(r"1 running job of process \d+ went back to the queue")
    program.until(lambda: len(programs.diary("start")) == 3, "the job runs again")
    again = programs.diary("start")[2]
    assert (again["job"], again["attempt"]) == (victims[0].id, 2)
    assert queue.require_job(other.id).attempts_made == 0
    programs.open_gate()
    program.until(lambda: queue.get_completed_count() == 3, "all jobs ran")
    assert queue.require_job(victims[1].id).attempts_made == 1
    program.signal(signal.SIGTERM)
    assert program.ends() == 0


def test_a_job_that_may_run_once_fails_when_its_process_is_killed(programs: Programs, queue: Queue) -> None:
    job = queue.add("die", group_id="g", max_attempts=1)
    queue.reconfigure(job_timeout=600)
    program = programs.worker("--processes", "1")
    program.until(lambda: queue.require_job(job.id).state == "failed", "the job has failed")
    assert "stalled" in str(queue.require_job(job.id).failed_reason)
    assert len(programs.diary("start")) == 1


def test_how_often_a_job_of_a_killed_process_is_tried_is_stored_with_the_queue(
    programs: Programs, queue: Queue
) -> None:
    job = queue.add("die", group_id="g")
    queue.reconfigure(job_timeout=600, max_attempts=1)
    program = programs.worker("--processes", "1")
    program.until(lambda: queue.require_job(job.id).state == "failed", "the job has failed")
    assert len(programs.diary("start")) == 1


def test_one_process_can_be_supervised(programs: Programs, queue: Queue) -> None:
    queue.pause()
    program = programs.worker("--processes", "1")
    (before,) = working(program, 1)
    os.kill(before, signal.SIGKILL)
    program.says("starting again")
    assert working(program, 1) != [before]


def test_a_crash_loop_ends_with_1(programs: Programs, queue: Queue) -> None:
    """Five deaths in a row stop the supervisor; the other process finishes its running jobs first."""
    queue.add("die", group_id="g", max_attempts=100)
    queue.reconfigure(job_timeout=0.2)
    program = programs.worker("--processes", "1")
    assert program.ends(90) == 1
    assert "process 0 ended with 9, 5 times in a row: giving up" in program.log
    assert len(programs.diary("start")) == 5
    assert program.log.count("starting again in") == 4
    assert not queue.get_active_count() or queue.check_stalled_jobs() is not None


def test_a_module_that_breaks_later_does_not_spin(programs: Programs, queue: Queue) -> None:
    queue.pause()
    program = programs.worker("--processes", "1")
    (pid,) = working(program, 1)
    programs.write("tasks.py", "raise ValueError('broken since')\n")
    os.kill(pid, signal.SIGKILL)
    assert program.ends(90) == 1
    assert "ValueError: broken since" in program.log
    assert "Traceback" not in program.log


def test_processes_drain_when_their_supervisor_is_killed(programs: Programs, queue: Queue) -> None:
    job = queue.add("wait")
    program = programs.worker("--processes", "2")
    pids = working(program, 2)
    program.until(lambda: programs.diary("start"), "the job runs")
    program.signal(signal.SIGKILL)
    try:
        program.says("the supervisor is gone; draining")
        programs.open_gate()
        program.until(lambda: not any(map(is_alive, pids)), "the processes have ended")
    finally:
        for pid in filter(is_alive, pids):
            os.kill(pid, signal.SIGKILL)
    assert queue.require_job(job.id).state == "completed"


def test_an_embedded_server_is_shared_by_all_processes(programs: Programs) -> None:
    """Each process would start its own server if the supervisor did not start one first."""
    programs.write(
        "produce.py",
        "import os, tasks\n"
        "from groupmq.sync import Queue\n"
        "def handle(job):\n"
        "    tasks.note('start', job)\n"
        "    if job.data < 3:\n"
        "        with Queue('orders', 'embedded://') as queue:\n"
        "            queue.add(job.data + 1)\n",
    )
    program = programs.worker("--processes", "2", "--group-concurrency", "2", "--redis-url", "embedded://")
    working(program, 2)
    where = set(re.findall(r"works on queue orders at (\S+),", program.log))
    assert len(where) == 1
    assert where.pop().startswith("unix://")


def test_a_changed_file_restarts_and_a_broken_one_waits(programs: Programs, queue: Queue) -> None:
    programs.write("app.py", "async def handle(job): return 'first'\n")
    queue.resume()  # create the queue, so that the worker does not wait for it
    program = programs.worker("--reload", spec="app:handle")
    (before,) = working(program, 1)
    first = queue.add(1)
    program.until(lambda: queue.require_job(first.id).state == "completed", "the first job ran")
    programs.write("app.py", "async def handle(job): return 'changed'\n")
    program.says(r"app\.py changed: starting again")
    program.until(lambda: len(re.findall("works on queue", program.log)) == 2, "the new process works")
    assert working(program, 1) != [before]
    second = queue.add(2)
    program.until(lambda: queue.require_job(second.id).state == "completed", "the second job ran")
    assert queue.require_job(first.id).return_value == "first"
    assert queue.require_job(second.id).return_value == "changed"
    programs.write("app.py", "async def handle(job) return 'broken'\n")
    program.says("waiting for a file to change")
    programs.write("app.py", "async def handle(job): return 'mended now'\n")
    third = queue.add(3)
    program.until(lambda: queue.require_job(third.id).state == "completed", "the third job ran")
    assert queue.require_job(third.id).return_value == "mended now"
    program.signal(signal.SIGTERM)
    assert program.ends() == 0


def test_a_reload_gives_running_jobs_back(programs: Programs, queue: Queue) -> None:
    job = queue.add("wait")
    program = programs.worker("--reload")
    program.until(lambda: programs.diary("start"), "the job runs")
    programs.write("other.py", "changed = True\n")
    program.until(lambda: len(programs.diary("start")) == 2, "the job runs in the next process")
    programs.open_gate()
    program.until(lambda: queue.require_job(job.id).state == "completed", "the job ended")
    assert [line["attempt"] for line in programs.diary("start")] == [1, 1]
