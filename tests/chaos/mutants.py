"""Checks that the checker detects scripts with a known defect: `python -m tests.chaos.mutants [NAME ...]`.

The state machine (`tests.model`) catches every defect of its list against a simulated clock. The defects listed here
must also be detected from outside, in a history of real processes. Each is run separately, with faults that expose it.
How much happens in a run depends on the machine, so a defect that was not found is run again with the next seed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from typing import NamedTuple


class Case(NamedTuple):
    defect: str
    """Name of a mutant of `tests.model.mutants`."""
    rules: tuple[str, ...]
    """One of these must be reported."""
    faults: str = "operator"
    minutes: float = 0.25
    every: str = ""
    """Seconds between two faults of a kind, other than usual."""
    ticks: int = 0
    """Run `tests.chaos.ticks` with this many ticks; 0 = run an ordinary chaos round."""

    def command(self, folder: str, seed: int) -> list[str]:
        python = [sys.executable, "-m"]
        rest = ["--mutant", self.defect, "--seed", str(seed), "--drain", "15"]
        if self.ticks:
            return [*python, "tests.chaos.ticks", "--ticks", str(self.ticks), "--seconds", "15", *rest]
        told = ["--faults", self.faults, "--minutes", str(self.minutes), "--keep", folder]
        told += ["--every", self.every] if self.every else []
        return [*python, "tests.chaos", *told, *rest]


SEEDS = (7, 8, 9)
CASES = (
    Case("completion without a look at the fence", ("S6",), "freeze,hang,kill", 0.6, "freeze=3"),
    Case("limit ignored", ("S4",)),
    Case("group not re-armed after a run", ("L2", "S16", "S15")),
    Case("hold ignored", ("S8", "S9")),
    Case("retry goes to the tail", ("S8", "S7")),
    Case("head at the wrong end", ("S7", "S15")),
    Case("pause of the queue ignored", ("S13",), "operator", 0.5),
    Case("delay truncated to seconds", ("S9",)),
    Case("stall uses no attempt", ("S10",), "kill,poison", 0.5),
    Case("one finished job too many", ("S14",)),
    Case("a resent request takes again", ("S3", "S5", "S6", "S10"), "drop,truncate,cut", 0.6),
    Case("turn of another worker ignored", ("S4",)),
    Case("result outlives its job", ("S15", "S17")),
    Case("event window ignored", ("S9",)),
    Case("overdue job starts", ("S9",)),
    Case("blocked group goes on with the next call", ("S19", "S15")),
    Case("open breaker ignored", ("S9",), "operator", 0.35),
    Case("snoozed job runs again at once", ("S9",)),
    Case("id free at once", ("S11",), "operator", 0.6),
    Case("occurrences overlap", ("S12",)),
    Case("tick not compared", ("S12",), ticks=3000),
    Case("tick not remembered", ("S12",), ticks=3000),
)


def main(names: list[str]) -> int:
    cases = [case for case in CASES if not names or any(name in case.defect for name in names)]
    missed = 0
    for n, case in enumerate(cases, start=1):
        began = time.monotonic()
        runs = 0
        for seed in SEEDS:
            runs += 1
            done, broken = play(case, seed)
            caught = done.returncode == 1 and not broken.isdisjoint(case.rules)
            if caught:
                break
        missed += not caught
        shown = ", ".join(sorted(broken)) or f"nothing (exit code {done.returncode})"
        verdict, took = "caught" if caught else "MISSED", time.monotonic() - began
        how = f"{took:.0f} s" if runs == 1 else f"{took:.0f} s, {runs} runs"
        print(f"{n:2}/{len(cases)} {verdict}  {case.defect}: {shown} ({how})", flush=True)
        if not caught:
            print(done.stdout[-2000:] + done.stderr[-2000:], flush=True)
    print(f"{len(cases) - missed} of {len(cases)} defects caught")
    return 1 if missed else 0


def play(case: Case, seed: int) -> tuple[subprocess.CompletedProcess[str], set[str]]:
    """One run, and the rules that it has broken."""
    with tempfile.TemporaryDirectory(prefix="groupmq-chaos-mutant-") as folder:
        done = subprocess.run(case.command(folder, seed), capture_output=True, text=True, check=False)
    return done, {line.split()[1] for line in done.stdout.splitlines() if line.startswith("  BROKEN ")}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
