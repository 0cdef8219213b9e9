"""OpenTelemetry (`pip install groupmq[otel]`): each run of a job is linked to the trace in which the job was added.

tracing = Tracing()
queue = Queue("orders", middleware=[tracing])                # a producer span for each add
Worker(queue, handle, middleware=[tracing])                  # a consumer span, linked to it, around each run
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any
from weakref import WeakKeyDictionary

from opentelemetry import propagate, trace
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode

from groupmq import Job


class Tracing:
    """A middleware for queues (producer spans) and workers (consumer spans)."""

    def __init__(self, tracer: trace.Tracer | None = None) -> None:
        self._tracer = tracer or trace.get_tracer("groupmq")
        self._open: WeakKeyDictionary[Job, tuple[AbstractContextManager[Span], Span]] = WeakKeyDictionary()

    def adding(self, headers: dict[str, str]) -> None:
        """Make a span for the add, and put its context into the job's headers."""
        with self._tracer.start_as_current_span("groupmq add", kind=SpanKind.PRODUCER):
            propagate.inject(headers)

    def before(self, job: Job) -> None:
        """Begin a span for the run, in the current trace or a new one, and link it to the add."""
        added = trace.get_current_span(propagate.extract(job.headers)).get_span_context()
        manager = self._tracer.start_as_current_span(
            "groupmq run",
            kind=SpanKind.CONSUMER,
            links=[Link(added)] if added.is_valid else [],
            attributes=_attributes(job),
        )
        self._open[job] = manager, manager.__enter__()

    def after(self, job: Job, result: Any) -> None:
        self._end(job)

    def error(self, job: Job, error: BaseException) -> None:
        if job in self._open:
            span = self._open[job][1]
            span.record_exception(error)
            span.set_status(Status(StatusCode.ERROR, f"{type(error).__name__}: {error}"))
        self._end(job)

    def _end(self, job: Job) -> None:
        opened = self._open.pop(job, None)
        if opened is not None:
            opened[0].__exit__(None, None, None)


def _attributes(job: Job) -> dict[str, Any]:
    found: dict[str, Any] = {
        "messaging.system": "groupmq",
        "messaging.message.id": job.id,
        "groupmq.attempt": job.attempt,
    }
    if job.group_id is not None:
        found["groupmq.group_id"] = job.group_id
    return found
