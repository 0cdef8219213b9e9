"""Worker processes under supervision: a dead one is started again; if one keeps dying, all are stopped."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

from groupmq import GroupMQError, Worker
from groupmq.cli.output.tables import number
from groupmq.cli.worker.health import ProcessReport
from groupmq.cli.worker.plan import WorkerPlan
from groupmq.cli.worker.reload import Watch
from groupmq.cli.worker.signals import SignalSteps

_logger = logging.getLogger("groupmq.cli")
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 30.0
STEADY = 10.0
"""Seconds of life after which a process counts as having worked."""
TOO_OFTEN = 5
"""Deaths in a row, none of them after a steady life, that make a crash loop."""
_RELOAD_GRACE = 2.0
_OVERTIME = 10.0
"""Seconds beyond the drain timeout after which a process that does not end is killed."""
_LIMIT = 2**20
_TAKE_BACK = 5.0
"""Seconds that giving back the jobs of a dead process may take."""


class SupervisedProcess:
    """One of the processes, and its successors."""

    def __init__(self, number: int, plan: WorkerPlan) -> None:
        self.number = number
        self._plan = plan
        self.process: asyncio.subprocess.Process | None = None
        self.report: ProcessReport | None = None
        self.up = asyncio.Event()
        """Set once the process, or one before it, has opened its queue, or waits for it to exist."""
        self.starts = 0
        self.deaths = 0
        self.reloading = False
        self._missed: signal.Signals | None = None
        """A signal that came while no process ran. It is for the next one, which may have been about to start."""

    async def live(self) -> int:
        """Start a process and wait for its end; returns its exit code, negative for a signal."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self.process = process = await self._spawn(theirs.fileno())
            except OSError as error:
                ours.close()
                _logger.error("process %d cannot be started: %s", self.number, error)
                return 1
        self.starts += 1
        if self._missed is not None:
            self.send_signal(self._missed)
        self.report = ProcessReport(self.number, process.pid)
        reader, writer = await asyncio.open_connection(sock=ours, limit=_LIMIT)
        listening = asyncio.create_task(self._listen(reader))
        try:
            writer.write(self._plan.to_json().encode() + b"\n")
            code = await process.wait()
            # Its last report may still be on its way, though not for long.
            await asyncio.wait([listening], timeout=1.0)
            if code != 0:
                await self._take_back(process.pid, self.report.bequests)
            return code
        finally:
            listening.cancel()
            self.process = self.report = None
            writer.close()

    async def _take_back(self, pid: int, bequests: list[str]) -> None:
        """Give back the jobs of the process. It has ended for certain, so its leases need not expire first."""
        for bequest in bequests:
            try:
                async with asyncio.timeout(_TAKE_BACK):
                    ids = await Worker.take_back(bequest)
            except (GroupMQError, TimeoutError) as error:
                why = str(error) or "no answer in time"
                text = "jobs of process %d cannot be given back (%s); they run again when their leases expire"
                _logger.warning(text, pid, why)
            else:
                if ids:
                    _logger.warning("%s of process %d went back to the queue", number(len(ids), "running job"), pid)

    async def _spawn(self, link: int) -> asyncio.subprocess.Process:
        # In a session of its own: Ctrl-C of a terminal reaches the supervisor only, which passes it on.
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *("-P", "-m", "groupmq.cli.worker.child", str(link), str(self.number), self._plan.spec),
            pass_fds=[link],
            stdin=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError):
            while line := await reader.readline():
                # A line that was cut because the socket had no room is followed by others.
                with contextlib.suppress(ValueError, TypeError):
                    self.report = ProcessReport.from_json(line)
                    if self.report.state in ("running", "waiting"):
                        self.up.set()

    def send_signal(self, number: signal.Signals) -> None:
        if self.process is None:
            self._missed = number
        elif self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)


class Supervisor:
    """Keeps `processes` worker processes alive until it is stopped."""

    def __init__(self, plan: WorkerPlan, processes: int, watch: Watch | None) -> None:
        names = plan.worker_options.get("name")
        plans = [
            replace(plan, worker_options={**plan.worker_options, "name": f"{names}-{n}"}) if names else plan
            for n in range(processes)
        ]
        self._plan = plan
        self.supervised = [SupervisedProcess(n, plans[n]) for n in range(processes)]
        self._watch = watch
        self._stopping = asyncio.Event()
        self._changed = asyncio.Event()
        self._up = False
        self._overtime: asyncio.TimerHandle | None = None

    def reports(self) -> Iterator[ProcessReport]:
        """The health of the processes; called from other threads."""
        for one in self.supervised:
            report = one.report
            if report is not None:
                yield replace(report, counters={**report.counters, "restarts": one.starts - 1})

    async def run(self) -> int:
        """Run until stopped, or until restarting is of no use; returns the exit code."""
        SignalSteps(self._stop, self._hurry, at_exit=self._kill).install()
        watching = asyncio.create_task(self._reload(self._watch)) if self._watch else None
        first = asyncio.create_task(self._keep(self.supervised[0]))
        tasks = [first]
        # The first one starts alone, so that a mistake on the command line is reported once, not once per process.
        up = asyncio.create_task(self.supervised[0].up.wait())
        await asyncio.wait([first, up], return_when=asyncio.FIRST_COMPLETED)
        up.cancel()
        if not first.done():
            tasks += [asyncio.create_task(self._keep(one)) for one in self.supervised[1:]]
        code = 0
        pending = set(tasks)
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                code = code or task.result()
            if code and pending and not self._stopping.is_set():
                self._stop()
        if watching is not None:
            watching.cancel()
        if self._overtime is not None:
            self._overtime.cancel()
        return code

    async def _keep(self, one: SupervisedProcess) -> int:
        """Keep one process alive; returns the exit code once it has ended for good."""
        while not self._stopping.is_set():
            began = time.monotonic()
            code = await one.live()
            lived = time.monotonic() - began
            self._up = self._up or one.up.is_set()
            if self._stopping.is_set() or (code == 0 and self._plan.burst):
                return 0
            if one.reloading:
                one.reloading, one.deaths = False, 0
                continue
            one.deaths = 1 if lived >= STEADY else one.deaths + 1
            how = _how(code)
            if self._watch is not None and code > 0:
                _logger.error("process %d %s; waiting for a file to change", one.number, how)
                await self._either(self._changed, None)
                one.deaths = 0
            elif not self._up and code > 0:
                # It never worked, and has reported why.
                return code
            elif one.deaths >= TOO_OFTEN:
                _logger.error("process %d %s, %d times in a row: giving up", one.number, how, one.deaths)
                return code if code in (2, 3) else 1
            else:
                pause = min(FIRST_PAUSE * 2 ** (one.deaths - 1), LONGEST_PAUSE)
                _logger.warning("process %d %s after %.1f s; starting again in %g s", one.number, how, lived, pause)
                await self._either(asyncio.Event(), pause)
        return 0

    async def _either(self, event: asyncio.Event, timeout: float | None) -> None:
        """Wait for an event, or until stopped."""
        waits = [asyncio.create_task(event.wait()), asyncio.create_task(self._stopping.wait())]
        await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def _reload(self, watch: Watch) -> None:
        async for changed in watch.changes():
            _logger.info("%s changed: starting again", ", ".join(changed[:3]) + (" ..." if len(changed) > 3 else ""))
            self._changed.set()
            self._changed.clear()
            going = [(one, one.process) for one in self.supervised if one.process is not None]
            for one, _ in going:
                one.reloading = True
                one.send_signal(signal.SIGTERM)
            await asyncio.sleep(_RELOAD_GRACE)
            for one, process in going:
                if one.process is process:
                    one.send_signal(signal.SIGTERM)

    # Signals

    def _stop(self) -> None:
        if not self._stopping.is_set():
            _logger.info("stopping: every process finishes its running jobs")
        self._stopping.set()
        self._signal_all(signal.SIGTERM)
        after = self._plan.drain_timeout + _OVERTIME
        self._overtime = asyncio.get_running_loop().call_later(after, self._kill)

    def _hurry(self) -> None:
        self._signal_all(signal.SIGTERM)

    def _kill(self) -> None:
        self._signal_all(signal.SIGKILL)

    def _signal_all(self, number: signal.Signals) -> None:
        for one in self.supervised:
            one.send_signal(number)


def _how(code: int) -> str:
    if code >= 0:
        return f"ended with {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
