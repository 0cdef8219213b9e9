"""`groupmq scheduler` and `groupmq recovery`: duties of the workers, run alone and in any number of copies."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import click

from groupmq import ConnectionLost, Duty, DutyReport, GroupMQError, Queue, QueueNotFound, Retention
from groupmq.cli.exits import BAD_USAGE, DONE, code_of, fail
from groupmq.cli.options.running import running_options
from groupmq.cli.options.target import Target, target_options
from groupmq.cli.options.values import DURATION, DurationType
from groupmq.cli.output import logs
from groupmq.cli.output.answers import as_line
from groupmq.cli.output.http_pages import serve
from groupmq.cli.worker import lifecycle
from groupmq.cli.worker.health import ProcessReport, probes
from groupmq.cli.worker.loading import PATIENCE
from groupmq.cli.worker.signals import SignalSteps
from groupmq.wording import number

_logger = logging.getLogger("groupmq.cli")
_LONGEST_PAUSE = 20.0


class DutyLoop:
    """Runs one duty, sleeps until there is more to do, at most for `interval`, and runs it again."""

    def __init__(
        self,
        queue: Queue,
        duty: Duty,
        interval: float,
        patience: float | None,
        cleanup_interval: float | None = None,
        *,
        wait: bool = False,
    ) -> None:
        """`cleanup_interval`: seconds between two clean-ups, which run beside the duty; None = no clean-ups.

        `wait`: wait for a queue that does not exist yet. Otherwise a missing queue is an error, so that a misspelled
        name is noticed.
        """
        self._queue = queue
        self._wait = wait
        self._duty: Duty = duty
        self._interval = interval
        self._cleanup_interval = cleanup_interval
        self._clean_at = 0.0
        self._patience = patience
        self._over = asyncio.Event()
        self._starting: asyncio.Future[None] | None = None
        self.did: list[DutyReport] = []
        """Reports of the last round: of the duty, then of the clean-up if it was due."""
        self.report = ProcessReport(0, os.getpid(), patience=60.0)

    async def run(self, *, once: bool) -> int:
        SignalSteps(self._stop).install()
        self._starting = asyncio.ensure_future(self._start())
        try:
            await self._starting
        except asyncio.CancelledError:
            return DONE
        if once:
            await self._run_duty()
            done = sum(report.done for report in self.did)
            _logger.info("%s: %s", self._duty, f"handled {number(done, 'due item')}" if done else "nothing was due")
            return DONE
        _logger.info("%s works on queue %s at %s", self._duty, self._queue.name, self._queue.address)
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
                pause = wait = min(pause * 2, _LONGEST_PAUSE, self._patience or _LONGEST_PAUSE)
                _logger.warning("%s of queue %s: %s; trying again in %g s", self._duty, self._queue.name, error, pause)
            else:
                wait = self._interval if wait is None else min(wait, self._interval)
            await self._sleep(wait)
        _logger.info("%s of queue %s stopped", self._duty, self._queue.name)
        return DONE

    async def _start(self) -> None:
        """Check the server. Raises QueueNotFound if the queue does not exist, unless the command waits for it."""
        await self._queue.ensure_writable(self._patience or PATIENCE)
        if not self._wait:
            await self._queue.get_settings()

    async def _look(self) -> float | None:
        """Run the duty if the queue exists. Returns the seconds until there is more to do, or None if unknown."""
        try:
            wait = await self._run_duty()
        except QueueNotFound as error:
            if self.report.state != "waiting":
                _logger.warning("%s; %s waits until then", error, self._duty)
                self.report.state = "waiting"
            return None
        if self.report.state == "waiting":
            _logger.info("queue %s exists now", self._queue.name)
            self.report.state = "running"
        return wait

    async def _run_duty(self) -> float | None:
        """Run the duty once. Returns the seconds until there is more to do; None if nothing is known to become due."""
        report = await self._queue.run_duty_once(self._duty)
        self.did = [report]
        self._log(report)
        if self._cleanup_interval is not None and time.monotonic() >= self._clean_at:
            cleanup = await self._queue.run_duty_once("cleanup")
            self.did.append(cleanup)
            self._log(cleanup)
            self._clean_at = time.monotonic() + self._cleanup_interval
        return report.next_in

    def _log(self, report: DutyReport) -> None:
        for error in report.errors:
            _logger.warning("queue %s: %s; other repeating jobs are not affected", self._queue.name, error)
        if self._duty == "scheduler" and report.done:
            done = report.added, report.promoted, report.unparked
            _logger.debug("added %d ticks, promoted %d delayed jobs, unparked %d groups", *done)
        gone = report.gone_workers
        if gone:
            text = "queue %s: forgot %s that stopped without deregistering: %s"
            _logger.info(text, self._queue.name, number(len(gone), "worker"), ", ".join(gone[:5]))

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
            "--wait", is_flag=True, help="Wait for a queue that does not exist yet, instead of exiting with 1."
        ),
        click.option(
            "--interval",
            type=DurationType(0.05),
            default=1.0,
            show_default=True,
            metavar="TIME",
            help="Longest sleep; work that is known to become due is done on time.",
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

    Workers do this too; run it where they have --no-maintenance or do not always run. Any number of copies is safe:
    each tick adds one job. A queue that does not exist is an error (exit code 1), unless --wait.
    """
    _run(target, {}, "scheduler", **options)


@click.command()
@target_options
@click.option("--max-attempts", type=int, help="Attempts of a job that sets none. [default: as stored]")
@click.option("--keep-failed", type=int, help="Failed jobs to keep. [default: as stored]")
@click.option(
    "--completed-age", type=DURATION, metavar="TIME", help="Age of completed jobs to remove. [default: as stored]"
)
@click.option("--failed-age", type=DURATION, metavar="TIME", help="Age of failed jobs to remove. [default: as stored]")
@click.option("--cleanup-interval", type=DurationType(0.1), default=60.0, show_default=True, metavar="TIME")
@duty_options
@running_options
def recovery(
    target: Target,
    max_attempts: int | None,
    keep_failed: int | None,
    completed_age: float | None,
    failed_age: float | None,
    cleanup_interval: float,
    **options: Any,
) -> None:
    """Take back jobs of workers that died, and clean up.

    Workers do this too; run it where they have --no-maintenance or do not always run. Any number of
    copies is safe. A queue that does not exist is an error (exit code 1), unless --wait.
    """
    settings: dict[str, Any] = {}
    if max_attempts is not None:
        settings["max_attempts"] = max_attempts
    if completed_age is not None:
        settings["keep_completed"] = Retention(age=completed_age)
    if keep_failed is not None or failed_age is not None:
        settings["keep_failed"] = Retention(count=keep_failed, age=failed_age)
    _run(target, settings, "recovery", cleanup_interval=cleanup_interval, **options)


def _run(
    target: Target,
    settings: dict[str, Any],
    duty: Duty,
    *,
    cleanup_interval: float | None = None,
    once: bool,
    wait: bool,
    interval: float,
    unreachable_timeout: float | None,
    health_port: int | None,
    bind: str,
    log_level: str,
    log_format: str | None,
) -> None:
    if once and wait:
        fail("--once and --wait exclude each other", BAD_USAGE)
    form = log_format or ("json" if target.as_json else "text")
    logs.set_up(log_level, form)
    name = target.name()

    async def main() -> int:
        # Attached, so that the queue is never made here with settings that its producer may not share.
        queue = Queue.attach(name, target.url, prefix=target.prefix, **settings)
        duties = DutyLoop(queue, duty, interval, unreachable_timeout, cleanup_interval, wait=wait)
        pages = serve(bind, {"health": health_port}, {"health": probes(lambda: [duties.report])})
        try:
            code = await duties.run(once=once)
            if once and target.as_json:
                click.echo(as_line(_answer(name, duty, duties.did)))
            return code
        finally:
            for page in pages:
                page.close()
            await queue.close()

    try:
        code = lifecycle.run(main())
    except GroupMQError as error:
        logs.last_words(str(error), form)
        code = code_of(error)
    sys.exit(code)


def _answer(queue: str, duty: Duty, did: list[DutyReport]) -> dict[str, Any]:
    """The work of one round, for programs."""
    return {
        "queue": queue,
        "duty": duty,
        "done": sum(report.done for report in did),
        "added": sum(report.added for report in did),
        "promoted": sum(report.promoted for report in did),
        "unparked": sum(report.unparked for report in did),
        "woken": sum(report.unparked for report in did),  # deprecated
        "stalled": [one.id for report in did for one in report.stalled],
        "expired": [one.id for report in did for one in report.expired],
        "removed": sum(report.removed for report in did),
        "gone_workers": [name for report in did for name in report.gone_workers],
        "errors": [error for report in did for error in report.errors],
        "next_in": did[0].next_in if did else None,
    }
