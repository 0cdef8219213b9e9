"""The main part of the demo, on a private server: nothing to install, nothing left behind."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from groupmq import Queue
from groupmq.demo import more, work
from groupmq.demo.proof import Proof, prove, read

JOBS, GROUPS, PRODUCERS, WORKERS, CONCURRENCY = 600, 60, 3, 4, 8
SEED = 7
GIVE_UP = 60.0


class WorkerProcesses:
    """The worker processes, each with a diary."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []

    def hire(self) -> None:
        diary = self._folder / f"worker-{len(self._processes)}.jsonl"
        diary.touch()
        command = [sys.executable, "-m", "groupmq.demo.work", str(diary), str(CONCURRENCY)]
        self._processes.append(subprocess.Popen(command))

    def kill_one(self) -> int:
        """kill -9 the first worker, in the middle of its work."""
        victim = self._processes[0]
        victim.kill()
        victim.wait()
        return victim.pid

    def dismiss(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def diaries(self) -> list[Path]:
        return sorted(self._folder.glob("*.jsonl"))


async def produce(queue: Queue, numbers: range) -> None:
    """Add jobs: some will fail once or twice, some start only later. A group belongs to one producer."""
    dice = random.Random(SEED + numbers.start)  # noqa: S311
    for n in numbers:
        failures = dice.choice((1, 2)) if dice.random() < 0.08 else 0
        delayed = dice.random() < 0.05
        await queue.add(
            {"n": n, "failures": failures, "delayed": delayed},
            group_id=f"customer:{n % GROUPS}",
            delay=dice.uniform(0.2, 1.0) if delayed else None,
        )


class Display:
    """One line of progress: redrawn on a terminal, a line a second anywhere else."""

    def __init__(self) -> None:
        self._live = sys.stdout.isatty()
        self._last = 0.0

    def show(self, done: int, active: int, waiting: int, delayed: int, *, final: bool = False) -> None:
        if not self._live and not final and time.monotonic() - self._last < 1:
            return
        self._last = time.monotonic()
        filled = 30 * done // JOBS
        bar = "#" * filled + "." * (30 - filled)
        line = f"[{bar}] {done:>3}/{JOBS} done  {active:>3} active  {waiting:>3} waiting  {delayed:>2} delayed"
        print(f"\r{line}" if self._live else line, end="" if self._live and not final else "\n", flush=True)

    def print_line(self, text: str) -> None:
        print(f"\r{text:<90}" if self._live else text, flush=True)


async def watch(
    queue: Queue, workers: WorkerProcesses, producing: asyncio.Future[list[None]], display: Display
) -> None:
    """Show progress until everything has run, and kill a worker on the way."""
    killed, end = False, time.monotonic() + GIVE_UP
    while time.monotonic() < end:
        counts, metrics = await queue.get_job_counts(), await queue.get_metrics()
        over = producing.done() and counts.total == 0
        display.show(metrics.completed, counts.active, counts.waiting, counts.delayed, final=over)
        if over:
            return
        if metrics.completed > JOBS // 3 and not killed:
            killed = True
            display.print_line(
                f"kill -9 of worker process {workers.kill_one()}, in the middle of its work; a new one takes over"
            )
            workers.hire()
        await asyncio.sleep(0.05)
    raise TimeoutError(f"the jobs did not finish within {GIVE_UP:g} s")


async def main() -> Proof:
    print(f"groupmq demo: {JOBS} jobs in {GROUPS} groups, {PRODUCERS} producers, {WORKERS} worker processes")
    print("8 % of the jobs fail once or twice, 5 % are delayed, and one worker is killed. The server is private.\n")
    with tempfile.TemporaryDirectory(prefix="groupmq-demo-") as name:
        workers = WorkerProcesses(Path(name))
        async with work.open_queue() as queue:
            await queue.get_job_counts()
            try:
                for _ in range(WORKERS):
                    workers.hire()
                # Each producer owns every third group, so that numbers grow inside a group.
                shares = [range(first, JOBS, PRODUCERS) for first in range(PRODUCERS)]
                producing = asyncio.gather(*(produce(queue, share) for share in shares))
                await watch(queue, workers, producing, Display())
                await producing
            finally:
                workers.dismiss()
            metrics = await queue.get_metrics()
        proof = prove(read(workers.diaries()), JOBS)
    print(f"""
  jobs run            {proof.jobs - proof.lost:>5}  of {proof.jobs}
  lost                {proof.lost:>5}
  order inversions    {proof.inversions:>5}
  overlaps in a group {proof.overlaps:>5}
  retries             {proof.retries:>5}  attempts that failed and were tried again, at their position
  duplicates          {proof.again:>5}  runs cut short by the kill and run again ({metrics.stalled} leases expired)
""")
    proof = replace(proof, beside=await more.show())
    print("\nProved: everything ran, in order, one at a time per group." if proof.holds else "\nBROKEN: see above.")
    return proof


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()).holds else 1)
