"""`groupmq check`: is the server fit for a queue, and does the queue move?"""

from __future__ import annotations

import time
from collections.abc import Iterator

import click
from rich.table import Table

from groupmq.cli import findings, tables
from groupmq.cli.common import NOT_FOUND, Target, show, target_options
from groupmq.cli.findings import FAIL, OK, WARN, Finding
from groupmq.cli.params import DURATION
from groupmq.cli.picking import jobs_of
from groupmq.cli.shapes import examples
from groupmq.cli.wire import Wire
from groupmq.errors import ConnectionLost, GroupMQError, QueueNotFound
from groupmq.sync import Queue

LOOKED_AT = 1000
"""Waiting jobs whose age is looked at."""


@click.command(
    epilog=examples(
        "groupmq check --queue orders",
        "groupmq check --queue orders --max-wait 60 --strict || alert",
        "groupmq check --redis-url redis://host:6379 --json",
    )
)
@click.option("--max-wait", type=DURATION, default=300, metavar="TIME", help="A job may wait this long.  [default: 5m]")
@click.option("--strict", is_flag=True, help="Warnings count as failures.")
@target_options
@click.pass_context
def check(ctx: click.Context, target: Target, max_wait: float, strict: bool) -> None:
    """Test the server, and with --queue whether the queue is worked on.

    Server: version, role, persistence, eviction, memory, scripts, clock. Queue: workers, oldest waiting job.
    Exit code 0: no failure (warnings only, unless --strict). 1: a check failed. 3: the server cannot be reached.
    """
    with Wire(target.url) as wire:
        found = [*_of_server(wire), *(_of_queue(target, wire, max_wait) if target.queue else ())]
    bad = {FAIL, WARN} if strict else {FAIL}
    passed = not any(one.status in bad for one in found)
    show(target, {"ok": passed, "server": wire.where, "queue": target.queue, "checks": found}, lambda: _table(found))
    if not passed:
        ctx.exit(NOT_FOUND)


def _table(found: list[Finding]) -> Table:
    rows = [(one.status, one.name, one.detail + (f" - {one.hint}" if one.hint else "")) for one in found]
    return tables.table(("", "CHECK", "FOUND"), rows)


def _of_server(wire: Wire) -> Iterator[Finding]:
    info = wire.info()
    yield Finding("server", OK, wire.where)
    yield findings.version(info)
    yield findings.role(info)
    yield findings.persistence(info, wire.config("save"))
    yield findings.eviction(info)
    yield findings.memory(info)
    yield _scripts(wire)
    before = time.time()
    seconds, micros = wire.ask("TIME")
    after = time.time()
    yield findings.clock(int(seconds) + int(micros) / 1e6 - (before + after) / 2)


def _scripts(wire: Wire) -> Finding:
    try:
        fits = wire.ask("EVAL", "return cmsgpack ~= nil and cjson ~= nil and 1 or 0", 0) == 1
    except ConnectionLost:
        raise
    except GroupMQError as error:
        return Finding("scripts", FAIL, str(error), "groupmq works by Lua scripts; allow EVAL and EVALSHA")
    if not fits:
        return Finding("scripts", FAIL, "no cmsgpack or cjson", "groupmq needs the libraries of Redis and Valkey")
    return Finding("scripts", OK, "Lua runs")


def _of_queue(target: Target, wire: Wire, max_wait: float) -> Iterator[Finding]:
    with target.open(make=False) as queue:
        try:
            counts, paused = queue.get_job_counts(), queue.is_paused()
        except QueueNotFound:
            yield Finding("queue", FAIL, f"{queue.name!r} does not exist", "adding a job or starting a worker makes it")
            return
        live = ", ".join(f"{getattr(counts, state):,} {state}" for state in ("active", "waiting", "delayed", "failed"))
        yield Finding("queue", OK, f"{queue.name}: {live}")
        yield findings.paused_queue(paused=paused)
        yield findings.workers(len(queue.get_workers()), counts, paused=paused)
        ages = [age for age in (_oldest(queue, wire), queue.get_metrics(minutes=0).oldest_wait) if age is not None]
        yield findings.oldest(max(ages, default=None), max_wait, sampled=counts.waiting > LOOKED_AT)


def _oldest(queue: Queue, wire: Wire) -> float | None:
    """How long the oldest waiting job has waited, in seconds; a delayed one waits from when it was due."""
    waiting = list(jobs_of(queue, queue.get_waiting_jobs(LOOKED_AT), "waiting"))
    if not waiting:
        return None
    seconds, micros = wire.ask("TIME")
    now = int(seconds) + int(micros) / 1e6
    since = []
    for job in waiting:
        created = job.created_at.timestamp() if job.created_at else now
        ordered = job.order_ms / 1000
        since.append(max(created, ordered) if ordered <= now else created)
    return max(0.0, now - min(since))
