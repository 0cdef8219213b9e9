"""Watching the event loop of a worker from a thread: a handler that blocks it stops every other job of the process.

Neither a timeout nor a cancellation reaches such a handler, so the log must name it and the line where it hangs.
"""

from __future__ import annotations

import asyncio
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from types import FrameType

from groupmq.client.job import Job
from groupmq.core.checks import Logger

TICK = 0.25
"""Seconds between two checks."""
BLOCKED = 0.5
"""Seconds without a sign of life after which the loop counts as blocked."""
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


class LoopWatch:
    """Asks the event loop for a sign of life while jobs run, and warns when none comes.

    `blocked_for`: for how many seconds the loop has been blocked, 0 = it is not. `blocked_in`: by which job and line.
    """

    def __init__(
        self,
        name: str,
        running: Callable[[], list[tuple[Job, asyncio.Task[None] | None]]],
        logger: Logger,
    ) -> None:
        self._name = name
        self._running = running
        self._logger = logger
        self._asked: float | None = None
        self._logged_at = 0.0
        self.seen = 0.0
        """When the loop was last seen to advance."""
        self.blocks = 0
        """How often it was blocked."""
        self.blocked_in: str | None = None
        self._stop = threading.Event()
        self._on_blocked: list[Callable[[], None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_thread = 0
        self._thread = threading.Thread(target=self._watch, name=f"{name}-watch", daemon=True)

    def on_blocked(self, notify: Callable[[], None]) -> None:
        """Call `notify`, in the thread of this watch, when the loop is blocked, and again while it stays so."""
        self._on_blocked.append(notify)

    def start(self) -> None:
        """Called in the event loop."""
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self.seen = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    @property
    def blocked_for(self) -> float:
        asked = self._asked
        return time.monotonic() - asked if self.blocked_in is not None and asked is not None else 0.0

    def ask(self) -> None:
        """Ask the loop for a sign of life, unless it has been asked and has not answered."""
        if self._asked is None and self._loop is not None and not self._loop.is_closed():
            self._asked = time.monotonic()
            self._loop.call_soon_threadsafe(self._answer)

    def _answer(self) -> None:
        """Called in the event loop."""
        asked, blocked_in = self._asked, self.blocked_in
        self.seen = time.monotonic()
        self._asked = self.blocked_in = None
        if blocked_in is not None and asked is not None:
            self._logger.warning(
                "worker %s: the event loop has recovered after %.1f s (%s)", self._name, self.seen - asked, blocked_in
            )

    def _watch(self) -> None:
        while not self._stop.wait(TICK):
            running = self._running()
            if running:
                self.ask()
            asked = self._asked
            if asked is not None and time.monotonic() - asked >= BLOCKED:
                self._blocked(time.monotonic() - asked, running)

    def _blocked(self, since: float, running: list[tuple[Job, asyncio.Task[None] | None]]) -> None:
        if self.blocked_in is None:
            self.blocks += 1
            self._logged_at = 0.0
        elif since < 2 * self._logged_at:
            return  # logged again each time it has lasted twice as long
        self._logged_at = since
        where = self._where(running)
        self.blocked_in = where
        self._logger.warning(
            "worker %s: the event loop has been blocked for %.1f s by %s; no other job of this process can run, and no "
            "timeout or cancel can stop this one. Move blocking code to a `def` handler or to asyncio.to_thread",
            self._name,
            since,
            where,
        )
        for notify in self._on_blocked:
            notify()

    def _where(self, running: list[tuple[Job, asyncio.Task[None] | None]]) -> str:
        """The job and the line of code, as far as they can be known."""
        task = asyncio.current_task(self._loop) if self._loop is not None else None
        job = next((job for job, its_task in running if its_task is task and task is not None), None)
        who = "no job of this worker" if job is None else f"job {job.id}"
        if job is not None and job.group_id is not None:
            who += f" of group {job.group_id!r}"
        line = _line(sys._current_frames().get(self._loop_thread))
        return f"{who}, in {line}" if line else who


def _line(innermost: FrameType | None) -> str | None:
    """The innermost line outside libraries; the very innermost if there is none."""
    frame = innermost
    while frame is not None and frame.f_code.co_filename.startswith(_LIBRARIES):
        frame = frame.f_back
    chosen = frame or innermost
    if chosen is None:
        return None
    return f"{chosen.f_code.co_filename}:{chosen.f_lineno} ({chosen.f_code.co_name})"
