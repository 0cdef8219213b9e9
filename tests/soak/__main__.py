"""`python -m tests.soak --minutes 60 --server valkey`: a steady load for a long time, and a verdict on what grew."""

from __future__ import annotations

import argparse
import json
import platform
import signal
import sys
import time
from pathlib import Path
from typing import Any

import redis

from groupmq import __version__
from tests.soak import chart
from tests.soak.crew import Crew
from tests.soak.sampling import CONFIG, Sampler
from tests.soak.verdict import Sample, Verdict, judge
from tests.support.servers import Server, available_kinds
from tests.support.waiting import wait_until

STEP, LOG_EVERY = 0.1, 60.0
FEW = 20
"""Series of keys and entries up to this size are not printed."""
START = 150.0


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak", description="Run a steady load and report what grows."
    )
    parser.add_argument("--minutes", type=float, default=60.0, help="length of the run (default 60)")
    parser.add_argument("--server", choices=available_kinds(), default="valkey")
    parser.add_argument("--rate", type=float, default=200.0, help="jobs added per second (default 200)")
    parser.add_argument("--sample", type=float, default=5.0, help="seconds between two samples (default 5)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the jobs and of the changes of workers")
    parser.add_argument("--out", type=Path, default=Path("build/soak"), help="folder for the results")
    parser.add_argument("--judge", type=Path, help="run nothing; judge the samples in this file")
    return parser.parse_args(given)


def log(line: str) -> None:
    print(line, flush=True)


def main(given: list[str] | None = None) -> int:
    args = arguments(given)
    if args.judge is not None:
        samples = [json.loads(line) for line in args.judge.read_text(encoding="utf-8").splitlines()]
        verdict = judge(samples)
        log(report(samples, verdict))
        return 0 if verdict.is_flat else 1
    args.out.mkdir(parents=True, exist_ok=True)
    for old in (*args.out.glob("*.status"), *args.out.glob("*.log")):
        old.unlink()
    server = Server.start(args.server, config=CONFIG)
    try:
        with redis.Redis.from_url(server.unix_url, socket_timeout=30) as client:
            versions = _versions(client)
            log(f"soak: {args.minutes:g} min, {args.rate:g} jobs/s, seed {args.seed}, {versions}; into {args.out}")
            samples, left = run(args, client, server.url)
    finally:
        server.stop()
    verdict = judge(samples, left=left)
    subtitle = f"{samples[-1]['t'] / 60:.1f} minutes at {args.rate:g} jobs/s; {versions}"
    (args.out / "soak.svg").write_text(chart.render(samples, verdict, subtitle), encoding="utf-8")
    (args.out / "verdict.txt").write_text(f"{subtitle}\n{report(samples, verdict)}\n", encoding="utf-8")
    log(report(samples, verdict))
    return 0 if verdict.is_flat else 1


def run(args: argparse.Namespace, client: redis.Redis, url: str) -> tuple[list[Sample], list[str]]:
    """Run the load. Returns the samples, and descriptions of unfinished work. SIGINT and SIGTERM end it early."""
    over: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: over.append(number))
    crew = Crew(url, args.out.resolve(), rate=args.rate, every=args.sample, seed=args.seed)
    samples: list[Sample] = []
    try:
        crew.start_all()
        wait_until(lambda: crew.is_filled(), "the queues are filled", START)
        sampler = Sampler(client, crew)
        began = time.monotonic()
        next_sample, next_line = began + args.sample, began + min(LOG_EVERY, args.minutes * 15)
        with (args.out / "samples.jsonl").open("w", encoding="utf-8") as file:
            while not over and time.monotonic() < began + args.minutes * 60:
                time.sleep(STEP)
                crew.step()
                if time.monotonic() >= next_sample:
                    next_sample += args.sample
                    samples.append(sampler.sample())
                    file.write(json.dumps(samples[-1]) + "\n")
                    file.flush()
                if samples and time.monotonic() >= next_line:
                    next_line += LOG_EVERY
                    log(progress(samples[-1]))
        left = [f"{name} did not exit in order" for name in crew.finish()]
        return samples, left + _remains(client)
    finally:
        crew.kill_all()


def _remains(client: Any) -> list[str]:
    """What is left after the drain: leases, groups, ready groups, delayed jobs."""
    found = []
    for what, size in (("active", "ZCARD"), ("groups", "HLEN"), ("ready", "ZCARD"), ("delayed", "ZCARD")):
        n = sum(client.execute_command(size, key) for key in client.scan_iter(f"*}}:{what}", count=1000))
        if n:
            found.append(f"{n} entries of {what!r} are left after the drain")
    return found


def progress(sample: Sample) -> str:
    jobs, server = sample["jobs"], sample["server"]
    return (
        f"  {sample['t'] / 60:5.1f} min  {jobs.get('completed', 0):,} completed, {jobs.get('backlog', 0)} alive, "
        f"{sample['keys']['all']} keys, server {(server['memory'] - server['logs']) / 2**20:.1f} MB "
        f"and {server['logs'] / 2**20:.1f} MB of logs, {sample['cores']:.2f} cores"
    )


def report(samples: list[Sample], verdict: Verdict) -> str:
    lines = [f"  {row}" for row in verdict.rows if row.last > FEW or not row.title.startswith(("keys", "entries"))]
    if samples:
        jobs, churn = samples[-1]["jobs"], samples[-1]["churn"]
        lines.append("  jobs: " + ", ".join(f"{n:,} {name}" for name, n in jobs.items()))
        lines.append("  workers: " + ", ".join(f"{n} {name}" for name, n in churn.items()))
        cores = sorted(sample["cores"] for sample in samples)[len(samples) // 2]
        lines.append(f"  processors used, median: {cores:.2f}")
    lines += [f"GREW: {row}" for row in verdict.grew] + [f"WRONG: {line}" for line in verdict.other]
    lines.append("flat: nothing grew beyond its bound" if verdict.is_flat else "not flat")
    return "\n".join(lines)


def _versions(client: Any) -> str:
    info = client.info("server")
    name = f"Valkey {info['valkey_version']}" if "valkey_version" in info else f"Redis {info['redis_version']}"
    return f"{name}, groupmq {__version__}, redis-py {redis.__version__}, Python {platform.python_version()}"


if __name__ == "__main__":
    sys.exit(main())
