"""What the dashboard costs: `python -m bench.dashboard [jobs] [groups]`.

Each page over a large queue: milliseconds, commands at the server, the slowest of them. Then a worker's throughput
alone, and with ten tabs open that fetch their page whenever they are told to, in several rounds. Other work on the same
machine changes a round by more than the tabs do: look at the best of each and at the median of the rounds.
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
ROUNDS = 6
BURST = 300_000


async def fill(queue: Queue, jobs: int, groups: int) -> tuple[str, str]:
    added = await queue.add_many({"data": {"n": n}, "group_id": f"user:{n % groups}"} for n in range(jobs))
    for n in range(300):
        job = await queue.add({"n": n}, group_id=f"user:{n % groups}")
        await queue.fail(job.id, f"error number {n}")
    return added[0].id, f"user:{groups // 2}"


class Watch:
    """Counts the calls of clients, and finds the slowest by the server's own log."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._client.config_set("slowlog-log-slower-than", 200)
        self.commands, self.slowest_ms = 0, 0.0

    @contextmanager
    def watching(self) -> Iterator[None]:
        before = self._calls()
        self._client.slowlog_reset()
        yield
        found = [entry for entry in self._client.slowlog_get(1000) if entry["command"].startswith(CALLS)]
        self.slowest_ms = max((entry["duration"] / 1000 for entry in found), default=0.0)
        self.commands = self._calls() - before - 1

    def _calls(self) -> int:
        """No script calls these, so each is a call of a client."""
        stats = self._client.info("commandstats")
        names = ("cmdstat_evalsha", "cmdstat_eval", "cmdstat_fcall", "cmdstat_fcall_ro", "cmdstat_info")
        return sum(int(stats[name]["calls"]) for name in names if name in stats)


def client_of(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1", timeout=60)


async def pages(server: Server, url: str, job: str, group: str) -> dict[str, dict[str, float]]:
    """The best of some rounds: others work on this machine too."""
    app, watch = create_app(redis=url), Watch(server.client)
    found: dict[str, dict[str, float]] = {}
    async with client_of(app) as client:
        for name in PAGES:
            path = build("", name, {"queue": QUEUE, "job": job, "group": group})
            (await client.get(path, headers={"Accept": "text/html"})).raise_for_status()
            best: dict[str, float] = {}
            for _ in range(ROUNDS):
                began = time.perf_counter()
                with watch.watching():
                    (await client.get(path, headers={"Accept": "text/html"})).raise_for_status()
                    took = (time.perf_counter() - began) * 1000
                one = {"ms": took, "commands": float(watch.commands), "slowest_ms": watch.slowest_ms}
                best = {key: min(value, best.get(key, value)) for key, value in one.items()}
            found[name] = best
    await app.close()
    return found


@asynccontextmanager
async def tabs(url: str, n: int) -> AsyncIterator[None]:
    """Open tabs on the lanes: each follows the stream of its queue and fetches its part when it is told to."""
    app = create_app(redis=url)
    desk = app.desk
    queue = await desk.catalogue.open(QUEUE)
    reader = desk.reader(queue)

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


async def throughput(url: str) -> float:
    """Jobs per second of one worker; the tabs are in another process."""
    async with Queue(QUEUE, url, keep_completed=0) as queue:
        await queue.add_many({"data": n, "group_id": f"user:{n % 1000}"} for n in range(BURST))

        async def handle(job: Job) -> None:
            return None

        began = time.perf_counter()
        await Worker(queue, handle, concurrency=50).run(burst=True)
        return BURST / (time.perf_counter() - began)


async def with_tabs(url: str) -> tuple[float, float]:
    """Jobs per second, and what share of a core the tabs' process took meanwhile."""
    command = [sys.executable, "-m", "bench.dashboard", "--tabs", url]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    await process.stdout.readline()
    used, began = cpu_seconds(process.pid), time.perf_counter()
    try:
        rate = await throughput(url)
        return rate, (cpu_seconds(process.pid) - used) / (time.perf_counter() - began)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def one_round(url: str, *, tabs_first: bool) -> tuple[float, float, float]:
    """Jobs per second alone, and with tabs; the share of a core that the tabs took."""
    watched = await with_tabs(url) if tabs_first else None
    alone = await throughput(url)
    rate, share = watched or await with_tabs(url)
    return alone, rate, share


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
        # In turn, and in each order as often: whatever else this machine does hits both.
        rounds = [await one_round(url, tabs_first=bool(n % 2)) for n in range(ROUNDS)]
    print(f"{jobs:,} jobs in {groups:,} groups\n{'page':<10} {'ms':>8} {'commands':>9} {'slowest call':>13}")
    for name, one in found.items():
        print(f"{name:<10} {one['ms']:>8.0f} {one['commands']:>9.0f} {one['slowest_ms']:>10.2f} ms")
    for alone, watched, share in rounds:
        change = f"{watched / alone - 1:+.1%}, the tabs took {share:.1%} of a core"
        print(f"worker alone {alone:,.0f}/s, with {TABS} tabs {watched:,.0f}/s ({change})")
    best = max(watched for _, watched, _ in rounds) / max(alone for alone, _, _ in rounds) - 1
    median = statistics.median(watched / alone for alone, watched, _ in rounds) - 1
    print(f"best of each {best:+.1%}, median of {len(rounds)} rounds {median:+.1%}")
    print(json.dumps({"pages": found, "rounds": rounds, "best": best, "median": median}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--tabs"]:
        asyncio.run(keep_open(sys.argv[2]))
    else:
        sizes = [int(word) for word in sys.argv[1:3]]
        asyncio.run(main(*(sizes or [100_000, 10_000])))
