"""`python -m bench`: measure, print the tables, write them to bench/results as .json, .raw.json and .svg."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.metrics import OURS, Samples, leads
from bench.peers import npm, pypi
from bench.peers.library import Library, ours
from bench.report import document, panels, svg, text
from bench.run import SCENARIOS, measure
from bench.scenarios.context import Scenario
from bench.server import ServerUnavailable, private_server
from bench.settings import QUICK, Settings
from bench.targets import judge

RESULTS = Path(__file__).resolve().parent / "results"


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smoke run: small counts, one round")
    parser.add_argument("--rounds", type=int, help="interleaved rounds (default 3)")
    parser.add_argument("--jobs", type=int, help="jobs per run at concurrency 100 (default 50,000)")
    parser.add_argument(
        "--only", action="append", choices=[scenario.name for scenario in SCENARIOS], help="may be repeated"
    )
    parser.add_argument(
        "--peers",
        choices=["node", "python", "all", "none"],
        default="node",
        help="compare with the Node libraries (default), the Python libraries, all, or none",
    )
    parser.add_argument("--no-peers", dest="peers", action="store_const", const="none", help="the same as --peers none")
    parser.add_argument("--server", choices=["redis", "valkey"], help="default: Redis if installed, else Valkey")
    parser.add_argument("--peers-dir", type=Path, default=npm.default_folder(), help="where npm installs the peers")
    parser.add_argument("--envs-dir", type=Path, default=pypi.FOLDER, help="where the Python peers are installed")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for the results")
    parser.add_argument("--name", help="name of the result files (default: latest; python for --peers python)")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target was missed")
    return parser.parse_args(argv)


def settings_of(args: argparse.Namespace) -> Settings:
    given = {name: getattr(args, name) for name in ("rounds", "jobs") if getattr(args, name) is not None}
    return dataclasses.replace(QUICK if args.quick else Settings(), **given)


def say(message: str) -> None:
    """Print progress to stderr, so that stdout has only the tables."""
    print(message, file=sys.stderr, flush=True)


def libraries_of(args: argparse.Namespace) -> tuple[list[Library], dict[str, str]]:
    """The libraries to measure, and the reasons why others cannot be measured."""
    libraries, missing = [ours()], {}
    if args.peers in ("node", "all"):
        try:
            libraries += npm.install(args.peers_dir)
        except npm.PeersUnavailable as error:
            say(f"without the Node peers, so without ratios to them: {error}")
            missing["Node libraries"] = str(error)
    if args.peers in ("python", "all"):
        installed, failed = pypi.install(args.envs_dir, say)
        libraries += installed
        missing |= failed
    return libraries, missing


def scenarios_of(args: argparse.Namespace) -> list[Scenario]:
    """The scenarios of `--only`, otherwise all that can be compared with the peers of this run."""
    if args.only:
        return [scenario for scenario in SCENARIOS if scenario.name in args.only]
    python = {"python": [True], "all": [True, False]}.get(args.peers, [False])
    return [scenario for scenario in SCENARIOS if ("python" in scenario.kinds) in python]


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    try:
        settings = settings_of(args)
    except ValueError as error:
        say(str(error))
        return 2
    libraries, missing = libraries_of(args)
    scenarios = scenarios_of(args)
    environment = {"machine": document.machine(), "node": npm.node_version(), "quick": args.quick}
    try:
        with private_server(args.server) as server:
            environment["server"] = server.describe()
            samples = measure(server, settings, libraries, scenarios, say)
    except ServerUnavailable as error:
        say(str(error))
        return 3
    samples.left_out |= missing
    if not samples.values:
        say("nothing was measured")
        return 1
    return report(samples, libraries, settings, environment, args)


def report(
    samples: Samples,
    libraries: Sequence[Library],
    settings: Settings,
    environment: dict[str, object],
    args: argparse.Namespace,
) -> int:
    verdicts = judge(samples)
    headline = describe(settings, environment)
    print(headline, end="\n\n")
    for table in text.tables(samples, libraries, settings):
        print(table, end="\n\n")
    if verdicts:
        print(text.verdicts(verdicts), end="\n\n")
    ahead = leads(samples, [library.key for library in libraries])
    if len(libraries) > 1:
        print(text.leads(ahead, libraries), end="\n\n")
    if samples.left_out:
        print(text.left_out(samples, libraries), end="\n\n")
    args.output.mkdir(parents=True, exist_ok=True)
    built = document.build(samples, verdicts, ahead, libraries, settings, environment)
    chart = svg.render(panels.all_of(samples, libraries, settings), verdicts, headline)
    for suffix, content in (
        ("json", json.dumps(built, indent=2) + "\n"),
        ("raw.json", document.raw(samples, environment)),
        ("svg", chart),
    ):
        path = args.output / f"{name_of(args)}.{suffix}"
        path.write_text(content)
        say(f"wrote {path}")
    if not any(library == OURS for _, library in samples.values):
        say("groupmq itself was not measured")
        return 1
    return 1 if args.check and not all(verdict.passed for verdict in verdicts) else 0


def name_of(args: argparse.Namespace) -> str:
    name: str = args.name or ("python" if args.peers == "python" else "latest")
    return name


def describe(settings: Settings, environment: dict[str, object]) -> str:
    machine = document.machine()
    rounds = "1 round" if settings.rounds == 1 else f"median of {settings.rounds} rounds"
    quick = "smoke run, " if environment["quick"] else ""
    return (
        f"{quick}{environment['server']}, {machine['cores']} cores, one worker process, no-op handlers, "
        f"20-byte payload, {settings.groups:,} groups, {rounds}"
    )


if __name__ == "__main__":
    sys.exit(main())
