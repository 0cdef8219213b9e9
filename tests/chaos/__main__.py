"""`python -m tests.chaos --minutes 2 --seed 7 [--faults kill,freeze] [--server redis] [--record FILE] [--keep DIR]`.

A long run is a sequence of rounds, each with a seed of its own that follows from the first one: each is drained and
checked before the next, so an hour needs no more memory than two minutes do.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.chaos import diary, report
from tests.chaos.checker.verdict import judge
from tests.chaos.cluster import ClusterServers
from tests.chaos.run import Round, play
from tests.chaos.schedule import ALL, KINDS, LINES, chosen
from tests.chaos.topology import SingleServer, Topology
from tests.support.servers import available_kinds

LONGEST_ROUND = 120.0
DRAIN = 60.0


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Break everything, lose nothing.")
    parser.add_argument("--minutes", type=float, default=2.0, help="time under faults (default 2)")
    parser.add_argument("--seed", type=int, help="of the schedule of faults; printed when not given")
    parser.add_argument("--faults", help=f"only these kinds: {','.join(ALL)}")
    parser.add_argument("--server", choices=available_kinds(), default="valkey")
    parser.add_argument("--cluster", action="store_true", help="three primaries and three replicas, not one server")
    parser.add_argument("--mutant", help="run with a defect of tests.model.mutants, by its name")
    parser.add_argument("--drain", type=float, default=DRAIN, help="seconds without progress that fail the drain")
    parser.add_argument("--record", type=Path, help="write the figures as a table to this file")
    parser.add_argument("--judge", type=Path, help="play nothing: judge the histories that --keep left in this folder")
    parser.add_argument("--keep", type=Path, help="keep the history of every round in this folder")
    return parser.parse_args(given)


def tell(line: str) -> None:
    print(line, flush=True)


def main(given: list[str] | None = None) -> int:
    args = arguments(given)
    seed = args.seed if args.seed is not None else int(time.time()) % 1_000_000
    total = report.Total(seed, f"{args.server}{' --cluster' if args.cluster else ''}", {})
    if args.judge is not None:
        for folder in sorted(path for path in args.judge.iterdir() if path.is_dir()):
            _judge(folder, total)
    else:
        _play_all(args, total)
    tell(report.text(total))
    if args.record is not None:
        args.record.write_text(report.table(total), encoding="utf-8")
    return 1 if total.findings else 0


def _play_all(args: argparse.Namespace, total: report.Total) -> None:
    where: type[SingleServer] | type[ClusterServers] = ClusterServers if args.cluster else SingleServer
    kinds, left, number = _known(chosen(args.faults), where), args.minutes * 60, 0
    while left > 0.5:
        number += 1
        seconds = min(left, LONGEST_ROUND)
        left -= seconds
        # The first round has the seed itself, so that one that failed can be played alone.
        seed = total.seed + 1000 * (number - 1)
        folder = Path(tempfile.mkdtemp(prefix=f"groupmq-chaos-{seed}-"))
        topology: Topology = where(args.server)
        try:
            if number == 1:
                total.versions = report.versions_here(topology.versions())
                told = ", ".join(f"{name} {which}" for name, which in total.versions.items())
                tell(f"chaos: seed {seed}, {args.minutes:g} min, {told}")
                tell(f"  faults: {', '.join(kinds)}")
            tell(f"round {number}: seed {seed}, {seconds:.0f} s")
            play(Round(number, seed, seconds, kinds, folder, args.drain, args.mutant), topology, tell)
        finally:
            topology.stop()
        _keep(folder, args.keep, broken=_judge(folder, total))


def _known(kinds: Sequence[str], where: type[Topology]) -> tuple[str, ...]:
    """Those that such servers can have."""
    missing = {kind for kind, told in KINDS.items() if told.targets == "server"} - where.NAMES
    return tuple(kind for kind in kinds if kind not in missing and (where.HAS_LINES or kind not in LINES))


def _judge(folder: Path, total: report.Total) -> bool:
    """Judge one history; whether it breaks a promise."""
    lines = diary.read(folder)
    verdict = judge(lines)
    total.add(verdict, next(line["seconds"] for line in lines if line["k"] == "round"))
    counts, broken = verdict.counts, len(verdict.findings)
    tell(f"  judged: {counts['jobs']} jobs, {counts['runs']} runs, {verdict.faults.total()} faults, {broken} broken")
    return bool(broken)


def _keep(folder: Path, where: Path | None, *, broken: bool) -> None:
    """The history of a round that broke a promise is always kept."""
    if where is not None:
        where.mkdir(parents=True, exist_ok=True)
        shutil.move(folder, where / folder.name)
    elif broken:
        tell(f"  its history is in {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
