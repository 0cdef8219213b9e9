"""`groupmq scheduler` and `groupmq recovery`: what workers do on their way, alone and in any number of copies."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import click

from groupmq import commands
from groupmq.cli import logs, running
from groupmq.cli.common import DONE, Target, target_options
from groupmq.cli.health import Report, probes, serve
from groupmq.cli.loading import require_writable
from groupmq.cli.signals import Stages
from groupmq.cli.worker import running_options
from groupmq.connection import PATIENCE
from groupmq.errors import ConnectionLost, GroupMQError, QueueNotFound
from groupmq.operations import Steps
from groupmq.options import Retention
from groupmq.queue import Queue
from groupmq.repeating import Repeating

_logger = logging.getLogger("groupmq.cli")
_LONGEST_PAUSE = 20.0


class Scheduler:
    """Repeats, delayed jobs, and groups whose wait is over."""

    NAME = "scheduler"

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._repeating = Repeating(queue.operations)
        self._looked: int | None = None

    async def look(self) -> tuple[int, float | None]:
        """Do what is due; how many things, and seconds until the next, None if nothing is known to come."""
        ran = await self._queue.run(self._repeating.run_due(self._looked))
        self._looked = ran.now
        for error in ran.errors:
            _logger.warning("%s", error)
        due = await self._queue.run(self._queue.operations.run_due(expire=False))
        if due.promoted or due.woken or ran.added:
            _logger.debug("added %d ticks, moved %d delayed, woke %d groups", ran.added, due.promoted, due.woken)
        # Nothing done and nothing to wait for: what is due is a lease, which is recovery's.
        waits = [wait / 1000 for wait in (ran.wait_ms, due.wait_ms) if wait > 0]
        return ran.added + due.promoted + due.woken, min(waits, default=None)


class Recovery:
    """Leases that ran out, jobs past their time, retention by age, workers that left without a word."""

    NAME = "recovery"

    def __init__(self, queue: Queue, cleanup_interval: float) -> None:
        self._queue = queue
        self._cleanup_interval = cleanup_interval
        self._clean_at = 0.0

    async def look(self) -> tuple[int, float | None]:
        due = await self._queue.run(self._queue.operations.run_due(promote=False))
        for stalled in due.stalled:
            what = "it failed for good" if stalled.final else "it runs again"
            told = {"job": stalled.id, "group": stalled.group_id}
            _logger.warning("job %s stalled: its lease expired, %s", stalled.id, what, extra=told)
        cleaned = 0
        if time.monotonic() >= self._clean_at:
            cleaned = await self._queue.run(self._clean_up())
            self._clean_at = time.monotonic() + self._cleanup_interval
        return len(due.stalled) + due.woken + cleaned, due.wait_ms / 1000 if due.wait_ms > 0 else None

    def _clean_up(self) -> Steps[int]:
        removed = yield from self._queue.operations.clean_up()
        gone = yield from self._queue.operations.gone_workers()
        if gone:
            _logger.info("%d workers left without a word: %s", len(gone), ", ".join(gone[:5]))
            yield commands.leave(gone, [f"{worker}:{lane}" for worker in gone for lane in range(2)])
        return removed + len(gone)


class Duties:
    """Looks, sleeps until the next due time or for `interval`, looks again."""

    def __init__(self, queue: Queue, duty: Scheduler | Recovery, interval: float, patience: float | None) -> None:
        self._queue = queue
        self._duty = duty
        self._interval = interval
        self._patience = patience
        self._over = asyncio.Event()
        self._starting: asyncio.Future[None] | None = None
        self.report = Report(0, os.getpid(), patience=60.0, queue=queue.name)

    async def run(self, *, once: bool) -> int:
        Stages(self._stop).install()
        self._starting = asyncio.ensure_future(require_writable(self._queue, self._patience or PATIENCE))
        try:
            await self._starting
        except asyncio.CancelledError:
            return DONE
        if once:
            with contextlib.suppress(QueueNotFound):
                done, _ = await self._duty.look()
                _logger.info("%s: did %d things", self._duty.NAME, done)
            return DONE
        where = self._queue.connection.endpoint.where
        _logger.info("%s works on queue %s at %s", self._duty.NAME, self._queue.name, where)
        self.report.state = "running"
        reached, pause = time.monotonic(), 0.5
        while not self._over.is_set():
            try:
                wait = await self._look()
                reached, pause, self.report.ready = time.monotonic(), 0.5, True
            except GroupMQError as error:
                self.report.ready = False
                if self._patience is not None and time.monotonic() - reached >= self._patience:
                    raise ConnectionLost(f"gave up: no answer for {self._patience:g} s ({error})") from error
                _logger.warning("%s; trying again", error)
                pause = wait = min(pause * 2, _LONGEST_PAUSE, self._patience or _LONGEST_PAUSE)
            else:
                wait = self._interval if wait is None else min(wait, self._interval)
            await self._sleep(wait)
        _logger.info("%s ended", self._duty.NAME)
        return DONE

    async def _look(self) -> float | None:
        """Seconds until the next look; None if nothing is known to come, as in a queue that nobody has made yet."""
        try:
            return (await self._duty.look())[1]
        except QueueNotFound:
            return None

    def _stop(self) -> None:
        self._over.set()
        if self._starting is not None:
            self._starting.cancel()

    async def _sleep(self, duration: float) -> None:
        end = time.monotonic() + duration
        while (left := end - time.monotonic()) > 0 and not self._over.is_set():
            self.report.loop_seen = time.monotonic()
            try:
                async with asyncio.timeout(min(left, 1.0)):
                    await self._over.wait()
            except TimeoutError:
                pass
        self.report.loop_seen = time.monotonic()


def duty_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--once", is_flag=True, help="Do what is due now, then exit."),
        click.option(
            "--interval",
            type=click.FloatRange(0.05),
            default=1.0,
            show_default=True,
            metavar="SECONDS",
            help="Longest sleep; what is known to come is done when it is due.",
        ),
    ):
        command = option(command)
    return command


@click.command()
@target_options
@duty_options
@running_options
def scheduler(target: Target, **options: Any) -> None:
    """Add the jobs of repeats, and start delayed jobs, on time.

    Workers do this by themselves; run it alone where they have --no-maintenance or are not always there. Any number of
    copies is safe: of each tick one makes a job.
    """
    _run(target, {}, Scheduler, **options)


@click.command()
@target_options
@click.option("--max-attempts", type=int, default=3, show_default=True, help="Runs of a job that sets none.")
@click.option("--keep-failed", type=int, help="Failed jobs to keep. [default: leaves that to the workers]")
@click.option("--completed-age", type=float, metavar="SECONDS", help="Remove completed jobs older than this.")
@click.option("--failed-age", type=float, metavar="SECONDS", help="Remove failed jobs older than this.")
@click.option("--cleanup-interval", type=click.FloatRange(0.1), default=60.0, show_default=True, metavar="SECONDS")
@duty_options
@running_options
def recovery(
    target: Target,
    max_attempts: int,
    keep_failed: int | None,
    completed_age: float | None,
    failed_age: float | None,
    cleanup_interval: float,
    **options: Any,
) -> None:
    """Take back jobs of workers that died, and clean up.

    Workers do this by themselves; run it alone where they have --no-maintenance or are not always there. Any number of
    copies is safe.
    """
    settings = {
        "max_attempts": max_attempts,
        "keep_completed": Retention(age=completed_age),
        "keep_failed": Retention(count=keep_failed, age=failed_age),
    }
    _run(target, settings, lambda queue: Recovery(queue, cleanup_interval), **options)


def _run(
    target: Target,
    settings: dict[str, Any],
    make: Callable[[Queue], Scheduler | Recovery],
    *,
    once: bool,
    interval: float,
    unreachable_timeout: float | None,
    health_port: int | None,
    bind: str,
    log_level: str,
    log_format: str | None,
) -> None:
    form = log_format or ("json" if target.as_json else "text")
    logs.set_up(log_level, form)
    name = target.name()

    async def main() -> int:
        queue = Queue(name, target.url, prefix=target.prefix, **settings)
        # Looking must not make a queue that nobody has made, with settings that its producer may not share.
        queue.connection.dialogue.accept_stored_settings(make=False)
        duties = Duties(queue, make(queue), interval, unreachable_timeout)
        pages = serve(bind, {"health": health_port}, {"health": probes(lambda: [duties.report])})
        try:
            return await duties.run(once=once)
        finally:
            for page in pages:
                page.close()
            await queue.close()

    try:
        code = running.run(main())
    except GroupMQError as error:
        logs.last_words(str(error), form)
        code = running.code_of(error)
    sys.exit(code)
