"""The demo: the promises that its proof covers, and the violations that the proof detects."""

from __future__ import annotations

import subprocess
import sys

from groupmq.demo.proof import DiaryEntry, prove


def run(
    n: int, start: float, end: float | None, attempt: int = 1, group: str = "g", fails: bool = False
) -> list[DiaryEntry]:
    shared = {"n": n, "group": group, "attempt": attempt, "delayed": False}
    entries: list[DiaryEntry] = [{"kind": "start", "at": start} | shared]
    if end is not None:
        entries.append({"kind": "fail" if fails else "end", "at": end} | shared)
    return entries


def proof_of(*runs: list[DiaryEntry], jobs: int) -> tuple[int, int, int, int]:
    proof = prove(sorted((e for r in runs for e in r), key=lambda e: float(e["at"])), jobs)
    return proof.lost, proof.inversions, proof.overlaps, proof.again


def test_a_sound_history_has_no_violations() -> None:
    assert proof_of(run(0, 1, 2), run(1, 2, 3), run(2, 1, 3, group="h"), jobs=3) == (0, 0, 0, 0)


def test_a_lost_job_is_seen() -> None:
    assert proof_of(run(0, 1, 2), jobs=2)[0] == 1


def test_an_inversion_is_seen() -> None:
    assert proof_of(run(1, 1, 2), run(0, 3, 4), jobs=2)[1] == 1


def test_an_overlap_is_seen() -> None:
    assert proof_of(run(0, 1, 3), run(1, 2, 4), jobs=2)[2] == 1


def test_a_killed_run_counts_as_a_duplicate_and_a_retry_does_not() -> None:
    assert proof_of(run(0, 1, None), run(0, 5, 6, attempt=2), jobs=1) == (0, 0, 0, 1)
    assert proof_of(run(0, 1, 2, fails=True), run(0, 3, 4, attempt=2), jobs=1) == (0, 0, 0, 0)


def test_the_demo_runs_and_proves_itself() -> None:
    done = subprocess.run([sys.executable, "-m", "groupmq.demo"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "order inversions        0" in done.stdout
    assert "Proved: everything ran" in done.stdout
    assert "kill -9 of worker process" in done.stdout
    assert "password reset, then receipt, then newsletter" in done.stdout
    assert "exclusive turns" in done.stdout
    assert "a tick of a cron  ran" in done.stdout
