"""Eight schedulers race for every tick while they are killed, frozen and cut off: `python -m tests.chaos.ticks`.

    python -m tests.chaos.ticks --ticks 100000 --schedulers 8 --seconds 200 --seed 1 [--server redis] [--record FILE]

All repeating jobs begin at the same instant and most share a grid, so all schedulers wake up for the same ticks. Each
tick must make exactly one job, even if a scheduler dies between looking for due ticks and adding the job.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from groupmq import Cron, Every, Queue
from tests.chaos import history as diaries
from tests.chaos import report
from tests.chaos.cast import Actor
from tests.chaos.history import HistoryFile
from tests.chaos.injecting import Injector
from tests.chaos.network import Network
from tests.chaos.schedule import plan
from tests.chaos.stage import Stage
from tests.chaos.tick_grid import Plan, Verdict, judge, plans
from tests.chaos.ticking import NAME, OPTIONS
from tests.chaos.topology import SingleServer
from tests.support.servers import available_kinds
from tests.support.waiting import wait_until

FAULTS = (
    *("kill", "freeze", "cut", "drop", "truncate", "delay", "hang"),
    *("functions", "scripts", "clients", "stop", "restart"),
)
GAPS = {"kill": 1.5, "freeze": 4.0}
"""Mean seconds between two faults: more often than in `make chaos`, since another scheduler always takes over."""
BEFORE = 12.0
"""Seconds for defining all repeating jobs before the first tick."""
SHOWN = 25
STEP = 0.02


def main(given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.ticks", description=__doc__)
    parser.add_argument("--ticks", type=int, default=100_000, help="ticks of all repeating jobs together")
    parser.add_argument("--schedulers", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=200, help="from the first tick to the last")
    parser.add_argument("--seed", type=int, default=1, help="seed of the schedule of faults")
    parser.add_argument("--server", choices=available_kinds(), default="valkey")
    parser.add_argument("--mutant", help="name of a defect of tests.model.mutants to use")
    parser.add_argument("--drain", type=float, default=60.0, help="seconds without progress until the drain fails")
    parser.add_argument("--record", type=Path, help="write the figures as a table to this file")
    args = parser.parse_args(given)
    with tempfile.TemporaryDirectory(prefix="groupmq-ticks-") as folder:
        topology = SingleServer(args.server)
        try:
            versions = report.versions_here(topology.versions())
            expected = _play(args, Path(folder), topology)
        finally:
            topology.stop()
        lines = diaries.read(Path(folder))
        verdict = judge(expected, [line for line in lines if line["k"] == "ran"])
        verdict.findings += [f"{n} jobs and repeats are left" for n in _of(lines, "drained", "left") if n]
        rows = _rows(args, expected, lines, verdict)
    told = ", ".join(f"{name} {which}" for name, which in versions.items())
    print(f"{told}; seed {args.seed}")
    for name, figure in rows:
        print(f"  {name:<34}  {figure}")
    for finding in verdict.findings[:SHOWN]:
        print(f"  BROKEN S12 {finding}")
    print("each tick made one job" if not verdict.findings else f"{len(verdict.findings)} broken promises")
    if args.record is not None:
        table = ["| | |", "|---|---|", *(f"| {name} | {figure} |" for name, figure in rows)]
        args.record.write_text("\n".join([f"Seed {args.seed}; {told}.", "", *table]) + "\n", encoding="utf-8")
    return 1 if verdict.findings else 0


def _play(args: argparse.Namespace, folder: Path, topology: SingleServer) -> list[Plan]:
    more = {} if args.mutant is None else {"release": args.mutant}
    schedulers = [Actor(f"scheduler-{n}", "tick scheduler", more, wire=True) for n in range(args.schedulers)]
    cast = [*schedulers, Actor("witness", "tick worker", more)]
    names = [actor.name for actor in schedulers]
    targets = {"worker": names, "process": names, "wire": names, "server": ["server"]}
    faults = plan(args.seed, args.seconds, FAULTS, targets, GAPS)
    history = HistoryFile(str(folder), "stage")
    with Network(topology.port, names) as network:
        urls = {name: network.url(name) for name in names} | {"witness": topology.url}
        stage = Stage(cast, history, {"history": str(folder)}, urls)
        try:
            for name in stage.names():
                stage.start(name)
            start = (int(time.time()) + int(BEFORE)) * 1000
            expected = plans(args.ticks, start, start + args.seconds * 1000)
            asyncio.run(_define(topology.url, expected, start, start + args.seconds * 1000))
            assert time.time() * 1000 < start, "the repeats were not defined before their first tick"
            wait_until(lambda: time.time() * 1000 >= start, "the first tick", 2 * BEFORE)
            injector = Injector(faults, stage, network, topology, history)
            began = time.monotonic()
            while time.monotonic() < began + args.seconds:
                injector.step()
                time.sleep(STEP)
            injector.heal()
            left = asyncio.run(_drain(topology.url, args.drain))
            history.note("drained", left=left)
            stage.end("tick scheduler", "tick worker", within=20)
        finally:
            stage.close()
    return expected


async def _define(url: str, expected: Sequence[Plan], start: int, end: int) -> None:
    async with Queue(NAME, url, **OPTIONS) as queue:
        for told in expected:
            when: dict[str, Any] = {"key": told.key, "start": start / 1000, "end": end / 1000}
            repeat = (
                Every(told.every / 1e6, catch_up="all", **when)
                if told.every
                else Cron(told.pattern, tz=told.tz, catch_up="all", **when)
            )
            await queue.add(told.key, group_id=told.key, repeat=repeat)


async def _drain(url: str, within: float) -> int:
    """Wait until nothing is left. Returns the number of jobs and repeating jobs left after `within` seconds without
    progress; a repeating job is gone after its last tick."""
    async with Queue(NAME, url, **OPTIONS) as queue:
        least, deadline = sys.maxsize, time.monotonic() + within
        while time.monotonic() < deadline:
            left = (await queue.get_job_counts()).total + len(await queue.get_repeating_jobs())
            if not left:
                return 0
            if left < least:
                least, deadline = left, time.monotonic() + within
            await asyncio.sleep(0.1)
        return left


def _of(lines: Sequence[diaries.Line], kind: str, name: str) -> list[Any]:
    return [line[name] for line in lines if line["k"] == kind]


def _rows(
    args: argparse.Namespace, expected: Sequence[Plan], lines: Sequence[diaries.Line], verdict: Verdict
) -> list[tuple[str, str]]:
    faults = Counter(_of(lines, "fault", "kind"))
    # The last figures of each scheduler process; one that was killed has added some more since.
    raced = {(line["actor"], line["pid"]): line for line in lines if line["k"] == "raced"}
    made = Counter[str]()
    for line in raced.values():
        made[line["actor"]] += line["made"]
    calls, lost = (sum(line[name] for line in raced.values()) for name in ("calls", "lost"))
    every = sum(bool(one.every) for one in expected)
    broken = {
        "missed": "missed its tick",
        "doubled": " times",
        "off the grid": "none of its ticks",
        "out of order": "out of order",
        "early": "before its time",
    }
    return [
        ("ticks", f"{sum(len(one.ticks) for one in expected):,} in {args.seconds} s"),
        ("repeats", f"{len(expected)}: {every} of Every, {len(expected) - every} of Cron"),
        ("jobs made", f"{verdict.jobs:,}"),
        ("schedulers", f"{args.schedulers}; each made {min(made.values()):,} to {max(made.values()):,} ticks"),
        ("calls that add ticks", f"{calls:,}, of which {lost:,} found all of theirs made by another"),
        ("faults", f"{faults.total():,}: " + ", ".join(f"{kind} {n}" for kind, n in faults.most_common())),
        *((name, str(sum(word in finding for finding in verdict.findings))) for name, word in broken.items()),
        (
            "a job came after its tick by",
            f"median {statistics.median(verdict.late):.0f} ms, {max(verdict.late)} ms at most",
        ),
    ]


if __name__ == "__main__":
    sys.exit(main())
