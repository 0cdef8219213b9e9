"""Listening to single jobs."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import NamedTuple
from weakref import ReferenceType

from groupmq.core.emitter import Emitter, Listener
from groupmq.core.events import KINDS, Event

_logger = logging.getLogger("groupmq.events")
_TOLD = 100
"""Events of a job that are remembered for whoever begins to listen to it later."""


class JobListeners(Emitter):
    """Who listens to one job. Held by the job object alone: when that goes, so does this.

    Whoever comes is told first what has happened before.
    """

    def __init__(self) -> None:
        super().__init__(KINDS, _logger)
        self._before: list[Event] | None = []
        self._told: deque[Event] = deque(maxlen=_TOLD)
        self._newcomers: list[tuple[str, Listener]] = []

    def observe(self, event: Event) -> None:
        if self._before is None:
            self._tell(event)
        else:
            self._before.append(event)

    def caught_up(self, past: list[Event]) -> None:
        """What had happened before anybody listened comes first."""
        later, self._before = self._before or [], None
        for event in [*past, *later]:
            self._tell(event)

    def _tell(self, event: Event) -> None:
        self._admit()
        self._told.append(event)
        self.emit(event.kind, event)

    def on(self, event: str, listener: Listener) -> Listener:
        if not self._told:
            return super().on(event, listener)
        Emitter(KINDS, _logger).on(event, listener)  # refuses what is wrong, here and now
        self._newcomers.append((event, listener))
        asyncio.get_running_loop().call_soon(self._admit)
        return listener

    def off(self, event: str, listener: Listener) -> bool:
        if (event, listener) in self._newcomers:
            self._newcomers.remove((event, listener))
            return True
        return super().off(event, listener)

    def listening(self, event: str) -> list[Listener]:
        """Who listens to this kind of event, newcomers too."""
        return [*self.listeners(event), *(listener for kind, listener in self._newcomers if kind == event)]

    def _admit(self) -> None:
        """Tell newcomers what the others have heard already; from now on they hear with them."""
        newcomers, self._newcomers = self._newcomers, []
        for kind, listener in newcomers:
            alone = Emitter(KINDS, _logger)
            alone.on(kind, listener)
            for event in self._told:
                alone.emit(event.kind, event)
            super().on(kind, listener)


class Behind(NamedTuple):
    """Listeners of a job that have yet to hear what happened to it before, up to a position of the log."""

    listeners: ReferenceType[JobListeners]
    job_id: str
    created_ms: int
    until: str | None
