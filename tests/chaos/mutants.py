"""Teeth: scripts with a defect, run under chaos, must be found out. `python -m tests.chaos.mutants [NAME ...]`.

The state machine (`tests.model`) catches every defect of its list in a virtual world. These are those whose harm must
also show from outside, in a history of real processes. Each has a run of its own, with what it takes to bring it out.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from typing import NamedTuple


class Case(NamedTuple):
    defect: str
    """Name of a mutant of `tests.model.mutants`."""
    rules: tuple[str, ...]
    """One of these must be reported."""
    faults: str = "operator"
    minutes: float = 0.25


CASES = (
    Case("completion without a look at the fence", ("S6",), "freeze,hang,kill", 0.6),
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
)


def main(names: list[str]) -> int:
    cases = [case for case in CASES if not names or any(name in case.defect for name in names)]
    missed = 0
    for n, case in enumerate(cases, start=1):
        command = [sys.executable, "-m", "tests.chaos", "--mutant", case.defect, "--faults", case.faults]
        command += ["--minutes", str(case.minutes), "--seed", "7", "--drain", "15"]
        with tempfile.TemporaryDirectory(prefix="groupmq-chaos-mutant-") as folder:
            done = subprocess.run([*command, "--keep", folder], capture_output=True, text=True, check=False)
        broken = {line.split()[1] for line in done.stdout.splitlines() if line.startswith("  BROKEN ")}
        caught = done.returncode == 1 and not broken.isdisjoint(case.rules)
        missed += not caught
        shown = ", ".join(sorted(broken)) or f"nothing (exit code {done.returncode})"
        print(f"{n:2}/{len(cases)} {'caught' if caught else 'MISSED'}  {case.defect}: {shown}", flush=True)
        if not caught:
            print(done.stdout[-2000:] + done.stderr[-2000:], flush=True)
    print(f"{len(cases) - missed} of {len(cases)} defects caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
