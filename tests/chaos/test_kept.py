"""Stored verdicts: they are read back as they were written, and summed up over the rounds of many runs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.chaos.__main__ import main
from tests.chaos.checker.finding import Finding, Notes
from tests.chaos.checker.verdict import Verdict
from tests.chaos.kept import Kept, load, save


def verdict(jobs: int, *findings: Finding) -> Verdict:
    notes = Notes(duplicates=Counter({"stalled after kill": 2}), recoveries=[1.5, float(jobs)], longest_ready=0.5)
    return Verdict(list(findings), notes, Counter({"jobs": jobs}), Counter({"kill": 3, "failover": 1}))


def test_a_verdict_comes_back_as_it_was(tmp_path: Path) -> None:
    told = Kept(verdict(7, Finding("S1", "lost")), 3, 120.0, "valkey --cluster", {"server": "Valkey 9"})
    save(tmp_path, told)
    assert load(tmp_path) == told


def test_rounds_of_several_runs_add_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for n, server in enumerate(("valkey", "valkey", "redis")):
        folder = tmp_path / server / str(n)
        folder.mkdir(parents=True)
        save(folder, Kept(verdict(1000 * (n + 1)), n, 60.0, server, {"server": server.title()}))
    record = tmp_path / "record.md"
    assert main(["--sum", str(tmp_path / "valkey"), str(tmp_path / "redis"), "--record", str(record)]) == 0
    table = record.read_text()
    assert "| jobs | 6,000 " in table
    assert "| faults | 12: kill 9, failover 3 |" in table
    assert "| second runs, by cause | 6: stalled after kill 6 |" in table
    assert "`--server valkey`: server Valkey; 2 rounds, 120 s; seeds 0, 1" in table
    assert "every promise held" in capsys.readouterr().out


def test_one_broken_promise_breaks_the_sum(tmp_path: Path) -> None:
    for n in range(2):
        (tmp_path / str(n)).mkdir()
        broken = (Finding("S4", "two at once"),) if n else ()
        save(tmp_path / str(n), Kept(verdict(5, *broken), n, 60.0, "valkey", {}))
    assert main(["--sum", str(tmp_path)]) == 1
