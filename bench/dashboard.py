"""The cost of the dashboard: `python -m bench.dashboard [jobs] [groups]`.

It measures each page of a large queue: milliseconds, commands at the server, the slowest command. Then it measures the
throughput of a worker alone, and with ten open tabs that fetch their page on each change, in several rounds. Other work
on the same machine changes a rate by more than the tabs do, so the table also has figures that depend less on that: the
CPU time of a job, and the share of the server's time that went into read-only calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx

from bench.server import Server, private_server
from groupmq import Job, Queue, Worker
from groupmq.dashboard import create_app
from groupmq.dashboard.paths import build

QUEUE = "orders"
PAGES = ("queues", "queue", "lanes", "jobs", "group", "job", "failures", "repeats", "workers", "events", "settings")
CALLS = (b"EVAL", b"FCALL", b"INFO", b"CONFIG GET")
TABS = 10
LOOKS = 15
LOGGED = 20_000
"""Entries of the slow log; it also contains the commands that calls make inside the server."""
ROUNDS = 6
BURST = 300_000


async def fill(queue: Queue, jobs: int, groups: int) -> tuple[str, str]:
    added = await queue.add_many({"data": {"n": n}, "group_id": f"user:{n % groups}"} for n in range(jobs))
    for n in range(300):
        job = await queue.add({"n": n}, group_id=f"user:{n % groups}")
        await queue.fail(job.id, f"error number {n}")
    return added[0].id, f"user:{groups // 2}"


class Watch:
    """Counts the calls of clients, and reads how long each took from the server's slow log."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._client.config_set("slowlog-log-slower-than", 0)
        self._client.config_set("slowlog-max-len", LOGGED)
        self.commands = 0
        self.calls_ms: list[float] = []
        """Milliseconds of each call, in order."""

    @contextmanager
    def watching(self) -> Iterator[None]:
        before = self._calls()
        self._client.slowlog_reset()
        yield
        found = [entry for entry in self._client.slowlog_get(LOGGED) if entry["command"].startswith(CALLS)]
        self.calls_ms = [entry["duration"] / 1000 for entry in reversed(found)]
        self.commands = self._calls() - before - 1

    def _calls(self) -> int:
        """The number of calls of clients: no script calls these commands."""
        stats = self._client.info("commandstats")
        names = ("cmdstat_evalsha", "cmdstat_eval", "cmdstat_fcall", "cmdstat_fcall_ro", "cmdstat_info")
        return sum(int(stats[name]["calls"]) for name in names if name in stats)


def client_of(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1", timeout=60)


async def pages(server: Server, url: str, job: str, group: str) -> dict[str, dict[str, float]]:
    """Measure all pages. The best of several rounds counts for each call, since other processes also take time."""
    app, watch = create_app(redis=url), Watch(server.client)
    found: dict[str, dict[str, float]] = {}
    async with client_of(app) as client:
        for name in PAGES:
            path = build("", name, {"queue": QUEUE, "job": job, "group": group})
            (await client.get(path, headers={"Accept": "text/html"})).raise_for_status()
            best: dict[str, float] = {}
            calls: dict[int, list[float]] = {}
            for _ in range(LOOKS):
                began = time.perf_counter()
                with watch.watching():
                    (await client.get(path, headers={"Accept": "text/html"})).raise_for_status()
                    took = (time.perf_counter() - began) * 1000
                one = {"ms": took, "commands": float(watch.commands)}
                best = {key: min(value, best.get(key, value)) for key, value in one.items()}
                before = calls.get(len(watch.calls_ms), watch.calls_ms)
                calls[len(watch.calls_ms)] = [min(pair) for pair in zip(before, watch.calls_ms, strict=True)]
            found[name] = best | {"slowest_ms": min(max(ms, default=0.0) for ms in calls.values())}
    await app.close()
    return found


@asynccontextmanager
async def tabs(url: str, n: int) -> AsyncIterator[None]:
    """Open tabs on the lanes: each subscribes to the stream of its queue and fetches its part on each change."""
    app = create_app(redis=url)
    shared = app.shared
    queue = await shared.catalogue.open(QUEUE)
    reader = shared.reader(queue)

    async def tab(client: httpx.AsyncClient) -> None:
        subscription, _ = await reader.subscribe("", events=False)
        try:
            while True:
                for message in await subscription.take(15):
                    if message.name == "changed":
                        await client.get(f"/queues/{QUEUE}/lanes", headers={"X-Fragment": "live"})
        finally:
            reader.unsubscribe(subscription)

    async with client_of(app) as client:
        open_tabs = [asyncio.ensure_future(tab(client)) for _ in range(n)]
        try:
            yield
        finally:
            for one in open_tabs:
                one.cancel()
            await asyncio.gather(*open_tabs, return_exceptions=True)
    await app.close()


@dataclass(frozen=True, slots=True)
class Run:
    """The figures of one worker. Its CPU times depend less on other work of the machine than its rate."""

    rate: float
    """Jobs per second."""
    worker_us: float
    """CPU time of the worker for one job."""
    server_us: float
    """CPU time of the server for one job."""
    looks: float
    """Share of the server's time that went into read-only calls, which the tabs take from the worker."""
    tabs: float
    """Share of a core that the process of the tabs used meanwhile."""


async def run(server: Server, url: str, tabs_pid: int | None = None) -> Run:
    """Measure one worker. The tabs, if any, are in another process."""
    async with Queue(QUEUE, url, keep_completed=0) as queue:
        await queue.add_many({"data": n, "group_id": f"user:{n % 1000}"} for n in range(BURST))

        async def handle(job: Job) -> None:
            return None

        def spent() -> tuple[float, ...]:
            cpu, stats = server.client.info("cpu"), server.client.info("commandstats")
            looked = sum(stats.get(f"cmdstat_{name}", {"usec": 0})["usec"] for name in ("fcall_ro", "info"))
            acted = stats["cmdstat_fcall"]["usec"]
            tabs = 0.0 if tabs_pid is None else cpu_seconds(tabs_pid)
            served = cpu["used_cpu_user"] + cpu["used_cpu_sys"]
            return time.perf_counter(), time.process_time(), served, looked, acted, tabs

        before = spent()
        await Worker(queue, handle, concurrency=50).run(burst=True)
        took, worker, served, looked, acted, tabs = (b - a for a, b in zip(before, spent(), strict=True))
    return Run(BURST / took, worker / BURST * 1e6, served / BURST * 1e6, looked / (looked + acted), tabs / took)


async def with_tabs(server: Server, url: str) -> Run:
    command = [sys.executable, "-m", "bench.dashboard", "--tabs", url]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    await process.stdout.readline()
    try:
        return await run(server, url, process.pid)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def one_round(server: Server, url: str, *, tabs_first: bool) -> tuple[Run, Run]:
    """Measure a worker alone and with tabs."""
    watched = await with_tabs(server, url) if tabs_first else None
    alone = await run(server, url)
    return alone, watched or await with_tabs(server, url)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def keep_open(url: str) -> None:
    async with tabs(url, TABS):
        print("open", flush=True)
        await asyncio.Event().wait()


async def main(jobs: int, groups: int) -> None:
    with private_server("valkey") as server:
        url = f"redis://127.0.0.1:{server.port}/0"
        async with Queue(QUEUE, url) as queue:
            job, group = await fill(queue, jobs, groups)
        found = await pages(server, url, job, group)
        async with Queue(QUEUE, url) as queue:
            await queue.purge(("waiting",))
            await queue.reconfigure(keep_completed=0)
        # Alternate between both orders, so that other work of the machine affects both alike.
        rounds = [await one_round(server, url, tabs_first=bool(n % 2)) for n in range(ROUNDS)]
    print(f"{jobs:,} jobs in {groups:,} groups\n{'page':<10} {'ms':>8} {'commands':>9} {'slowest call':>13}")
    for name, one in found.items():
        print(f"{name:<10} {one['ms']:>8.0f} {one['commands']:>9.0f} {one['slowest_ms']:>10.2f} ms")
    columns = f"{'us/job':>14} {'server us/job':>14} {'looks':>12} {'tabs':>6}"
    print(f"{'worker':<10} {'alone/s':>8} {TABS} tabs/s {'change':>8} {columns}")
    for n, (alone, watched) in enumerate(rounds, 1):
        worker = f"{alone.worker_us:.1f} {watched.worker_us:.1f}"
        served = f"{alone.server_us:.1f} {watched.server_us:.1f}"
        change = f"{watched.rate / alone.rate - 1:+.1%}"
        print(
            f"round {n:<4} {alone.rate:>8,.0f} {watched.rate:>9,.0f} {change:>8} {worker:>14} {served:>14} "
            f"{alone.looks:>6.1%}{watched.looks:>6.1%} {watched.tabs:>6.1%}"
        )
    best = max(two.rate for _, two in rounds) / max(one.rate for one, _ in rounds) - 1
    changes = {
        name: statistics.median(getattr(two, name) / getattr(one, name) for one, two in rounds) - 1
        for name in ("rate", "worker_us", "server_us")
    }
    said = ", ".join(f"{name} {by:+.1%}" for name, by in changes.items())
    looks = statistics.median(two.looks - one.looks for one, two in rounds)
    print(f"best rate of each {best:+.1%}; medians of {len(rounds)} rounds: {said}")
    print(f"the tabs took {looks:.1%} of the server's time (median)")
    print(
        json.dumps(
            {
                "pages": found,
                "rounds": [[asdict(one), asdict(two)] for one, two in rounds],
                "change": changes,
                "looks": looks,
            }
        )
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--tabs"]:
        asyncio.run(keep_open(sys.argv[2]))
    else:
        sizes = [int(word) for word in sys.argv[1:3]]
        asyncio.run(main(*(sizes or [100_000, 10_000])))
