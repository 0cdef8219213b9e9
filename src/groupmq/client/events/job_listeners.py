"""Listeners of single jobs."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import NamedTuple
from weakref import ReferenceType

from groupmq.core.events import KINDS, Event
from groupmq.runtime.emitter import Emitter, Listener

_logger = logging.getLogger("groupmq.events")
_REMEMBERED = 100
"""Events of a job that are kept for listeners that register later."""


class JobListeners(Emitter):
    """The listeners of one job. Only the job object refers to them: they are dropped with it.

    A new listener is first called for the events that have happened before.
    """

    def __init__(self) -> None:
        super().__init__(KINDS, _logger)
        self._before: list[Event] | None = []
        self._delivered: deque[Event] = deque(maxlen=_REMEMBERED)
        self._newcomers: list[tuple[str, Listener]] = []

    def receive(self, event: Event) -> None:
        if self._before is None:
            self._deliver(event)
        else:
            self._before.append(event)

    def caught_up(self, past: list[Event]) -> None:
        """Deliver what happened before the first listener registered, then what came meanwhile."""
        later, self._before = self._before or [], None
        for event in [*past, *later]:
            self._deliver(event)

    def _deliver(self, event: Event) -> None:
        self._admit()
        self._delivered.append(event)
        self.emit(event.kind, event)

    def on(self, event: str, listener: Listener) -> Listener:
        if not self._delivered:
            return super().on(event, listener)
        Emitter(KINDS, _logger).on(event, listener)  # raises at once if the event or the listener is wrong
        self._newcomers.append((event, listener))
        asyncio.get_running_loop().call_soon(self._admit)
        return listener

    def off(self, event: str, listener: Listener) -> bool:
        if (event, listener) in self._newcomers:
            self._newcomers.remove((event, listener))
            return True
        return super().off(event, listener)

    def listening(self, event: str) -> list[Listener]:
        """Listeners of this kind of event, newcomers too."""
        return [*self.listeners(event), *(listener for kind, listener in self._newcomers if kind == event)]

    def _admit(self) -> None:
        """Call newcomers for the events that the others have received; from now on they receive events with them."""
        newcomers, self._newcomers = self._newcomers, []
        for kind, listener in newcomers:
            alone = Emitter(KINDS, _logger)
            alone.on(kind, listener)
            for event in self._delivered:
                alone.emit(event.kind, event)
            super().on(kind, listener)


class PendingCatchUp(NamedTuple):
    """Listeners of a job that have yet to receive what happened to it before, up to a position of the log."""

    listeners: ReferenceType[JobListeners]
    job_id: str
    created_ms: int
    until: str | None
