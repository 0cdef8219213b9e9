"""`python -m tests.chaos --minutes 2 --seed 7 [--faults kill,freeze] [--server redis] [--record FILE] [--keep DIR]`.

A long run is a sequence of rounds. The seed of each round is derived from the first seed, and each round is drained and
checked before the next one starts, so an hour needs no more memory than two minutes do.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.chaos import history, kept, report
from tests.chaos.checker.verdict import judge
from tests.chaos.cluster import ClusterServers
from tests.chaos.run import Round, play
from tests.chaos.schedule import ALL, KINDS, WIRES, chosen, gaps_of
from tests.chaos.topology import SingleServer, Topology
from tests.support.servers import available_kinds

ROUND = 120.0
DRAIN = 60.0


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Break everything, lose nothing.")
    parser.add_argument("--minutes", type=float, default=2.0, help="time under faults (default 2)")
    parser.add_argument("--seed", type=int, help="seed of the schedule of faults; printed if omitted")
    parser.add_argument("--faults", help=f"inject only these kinds of faults: {','.join(ALL)}")
    parser.add_argument("--every", help="mean seconds between faults of a kind: failover=1.5,move=3")
    parser.add_argument("--server", choices=available_kinds(), default="valkey")
    parser.add_argument("--cluster", action="store_true", help="three primaries, three replicas instead of one server")
    parser.add_argument("--mutant", help="name of a defect of tests.model.mutants to run with")
    parser.add_argument("--round", type=float, default=ROUND, help=f"seconds of one round (default {ROUND:g})")
    parser.add_argument("--drain", type=float, default=DRAIN, help="seconds without progress until the drain fails")
    parser.add_argument("--record", type=Path, help="write the figures as a table to this file")
    parser.add_argument("--judge", type=Path, help="play nothing: judge the histories that --keep left in this folder")
    parser.add_argument(
        "--sum", type=Path, nargs="+", help="play nothing: add up the verdicts in these folders of --keep"
    )
    parser.add_argument("--keep", type=Path, help="keep the history of every round in this folder")
    return parser.parse_args(given)


def log(line: str) -> None:
    print(line, flush=True)


def main(given: list[str] | None = None) -> int:
    args = arguments(given)
    seed = args.seed if args.seed is not None else int(time.time()) % 1_000_000
    more = "".join(
        [
            " --cluster" if args.cluster else "",
            f" --faults {args.faults}" if args.faults else "",
            f" --every {args.every}" if args.every else "",
            f" --round {args.round:g}" if args.round != ROUND else "",
        ]
    )
    total = report.Total(seed, f"{args.server}{more}", {})
    if args.sum is not None:
        return _add_up(args)
    if args.judge is not None:
        total.versions = report.versions_here({"server": args.server})
        for folder in sorted(path for path in args.judge.iterdir() if path.is_dir()):
            _judge(folder, total)
    else:
        _play_all(args, total)
    log(report.text(total))
    if args.record is not None:
        args.record.write_text(report.table(total), encoding="utf-8")
    return 1 if total.findings else 0


def _add_up(args: argparse.Namespace) -> int:
    """Sum up all rounds that were kept into one record."""
    rounds = kept.all_of(args.sum)
    total = report.Total(0, "", {})
    for one in rounds:
        total.add(one.verdict, one.seconds)
    told = kept.played(rounds)
    for line in (*told, report.text(total)):
        log(line)
    if args.record is not None:
        table = [*(f"- {line}" for line in told), "", *report.rows_of(total)]
        args.record.write_text("\n".join(table) + "\n", encoding="utf-8")
    return 1 if total.findings else 0


def _play_all(args: argparse.Namespace, total: report.Total) -> None:
    where: type[SingleServer] | type[ClusterServers] = ClusterServers if args.cluster else SingleServer
    kinds, left, number = _known(chosen(args.faults), where), args.minutes * 60, 0
    while left > 0.5:
        number += 1
        seconds = min(left, args.round)
        left -= seconds
        # The first round uses the given seed itself, so that a round that failed can be run again alone.
        seed = total.seed + 1000 * (number - 1)
        folder = Path(tempfile.mkdtemp(prefix=f"groupmq-chaos-{seed}-"))
        topology: Topology = where(args.server)
        try:
            if number == 1:
                total.versions = report.versions_here(topology.versions())
                versions = ", ".join(f"{name} {which}" for name, which in total.versions.items())
                log(f"chaos: seed {seed}, {args.minutes:g} min, {versions}")
                log(f"  faults: {', '.join(kinds)}")
            log(f"round {number}: seed {seed}, {seconds:.0f} s")
            told = Round(number, seed, seconds, kinds, folder, args.drain, args.mutant, gaps_of(args.every))
            play(told, topology, log)
        finally:
            topology.stop()
        _keep(folder, args.keep, broken=_judge(folder, total))


def _known(kinds: Sequence[str], where: type[Topology]) -> tuple[str, ...]:
    """The kinds of faults that this topology supports."""
    missing = {kind for kind, told in KINDS.items() if told.targets == "server"} - where.NAMES
    return tuple(kind for kind in kinds if kind not in missing and (where.HAS_WIRES or kind not in WIRES))


def _judge(folder: Path, total: report.Total) -> bool:
    """Judge one history. Returns whether it breaks a promise."""
    lines = history.read(folder)
    verdict = judge(lines)
    told = next(line for line in lines if line["k"] == "round")
    total.add(verdict, told["seconds"])
    # A history that is judged again keeps the server and the versions recorded when it was played.
    before = kept.load(folder) if kept.has(folder) else None
    server, versions = (before.server, before.versions) if before else (total.server, total.versions)
    kept.save(folder, kept.Kept(verdict, told["seed"], told["seconds"], server, versions))
    counts, broken = verdict.counts, len(verdict.findings)
    log(f"  judged: {counts['jobs']} jobs, {counts['runs']} runs, {verdict.faults.total()} faults, {broken} broken")
    return bool(broken)


def _keep(folder: Path, where: Path | None, *, broken: bool) -> None:
    """Move the history to `--keep`, or delete it. The history of a round that broke a promise is never deleted."""
    if where is not None:
        where.mkdir(parents=True, exist_ok=True)
        shutil.move(folder, where / folder.name)
    elif broken:
        log(f"  its history is in {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
