"""Long operations: bounded steps, a bar on a terminal, and Ctrl-C that ends them between two steps."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from groupmq.cli.exits import INTERRUPTED, fail
from groupmq.cli.options.target import Target
from groupmq.cli.output.answers import console, show


class Interrupted(Exception):
    """Ctrl-C was pressed: the finished steps stay done, and the rest is unchanged."""


class LongWork:
    """Counts what is done and shows it. The first Ctrl-C ends the work after the step under way, the second at once.

    >>> with LongWork("removing", total=5000) as work:
    ...     queue.purge(["waiting"], progress=work.reached)
    >>> work.report(target, "removed", queue="orders")
    """

    def __init__(self, title: str, total: int | None) -> None:
        self.done = 0
        self.total = total
        self.interrupted = False
        self._asked = False
        self._former: Any = None
        bar = console(stderr=True)
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        self._progress = Progress(
            *columns, TimeElapsedColumn(), console=bar, transient=True, disable=not bar.is_terminal
        )
        self._task = self._progress.add_task(title, total=total)

    def advance(self, n: int = 1) -> None:
        """Count `n` more as done. Raises Interrupted if Ctrl-C was pressed meanwhile."""
        self.done += n
        if self.total is not None and self.done > self.total:
            self.total = self.done
        self._progress.update(self._task, completed=self.done, total=self.total)
        self.stop_if_asked()

    def stop_if_asked(self) -> None:
        if self._asked:
            raise Interrupted

    def reached(self, done: int) -> None:
        """Set the number done so far: the `progress` callback of the queue's long operations."""
        self.advance(done - self.done)

    def report(self, target: Target, verb: str, text: Callable[[], Any] | None = None, **more: Any) -> None:
        """Report how much was done; after Ctrl-C, report that it was not all, and exit with the code for that."""
        if self.interrupted:
            if target.as_json:
                show(target, {**more, verb: self.done, "interrupted": True}, lambda: None)
            of = f" of {self.total:,}" if self.total else ""
            fail(f"interrupted: {self.done:,}{of} {verb}; run it again to continue", INTERRUPTED)
        show(target, {**more, verb: self.done, "interrupted": False}, text or (lambda: f"{self.done:,} {verb}"))

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._former = signal.signal(signal.SIGINT, self._on_interrupt)
        self._progress.start()
        return self

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True
        print("\nending after this step; Ctrl-C again to end at once", file=sys.stderr)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._progress.stop()
        if self._former is not None:
            signal.signal(signal.SIGINT, self._former)
        self.interrupted = isinstance(error, Interrupted)
        return self.interrupted
