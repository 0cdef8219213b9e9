"""The trace of a job's producer continues where the job runs."""

from __future__ import annotations

import pytest

from groupmq import FailJob, Job, JobFailed, Queue
from tests.conftest import MakeQueue

pytest.importorskip("opentelemetry.sdk", reason="the oldest redis-py is tested without the extras")

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from groupmq.contrib.otel import Tracing


class Traced:
    """A queue and a worker with tracing, and the spans they made."""

    def __init__(self, make_queue: MakeQueue) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = provider.get_tracer("test")
        self.tracing = Tracing(self.tracer)
        self.queue: Queue = make_queue(middleware=[self.tracing])

    async def work(self) -> None:
        await self.queue.process(self._handle, middleware=[self.tracing])

    async def _handle(self, job: Job) -> None:
        with self.tracer.start_as_current_span("inside"):
            if job.data == "bad":
                raise FailJob("no")

    def spans(self, name: str) -> list[ReadableSpan]:
        return [span for span in self._exporter.get_finished_spans() if span.name == name]


async def test_a_run_is_linked_to_the_add_and_what_the_handler_does_is_inside_it(make_queue: MakeQueue) -> None:
    traced = Traced(make_queue)
    await traced.work()
    with traced.tracer.start_as_current_span("request") as request:
        job = await traced.queue.add("good", group_id="g")
        await job.result(10)
    (added,), (ran,), (inside,) = traced.spans("groupmq add"), traced.spans("groupmq run"), traced.spans("inside")
    assert added.parent is not None
    assert added.parent.span_id == request.get_span_context().span_id
    assert (added.kind, ran.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert [link.context.span_id for link in ran.links] == [added.context.span_id]
    assert inside.parent is not None
    assert inside.parent.span_id == ran.context.span_id
    assert ran.attributes is not None
    assert (ran.attributes["messaging.message.id"], ran.attributes["groupmq.group_id"]) == (job.id, "g")
    assert ran.status.status_code is StatusCode.UNSET
    assert trace.get_current_span() is trace.INVALID_SPAN


async def test_a_span_of_a_failed_run_has_its_error(make_queue: MakeQueue) -> None:
    traced = Traced(make_queue)
    await traced.work()
    with pytest.raises(JobFailed):
        await (await traced.queue.add("bad")).result(10)
    (ran,) = traced.spans("groupmq run")
    assert ran.status.status_code is StatusCode.ERROR
    assert [event.name for event in ran.events] == ["exception"]


async def test_many_jobs_of_one_add_share_its_span(make_queue: MakeQueue) -> None:
    traced = Traced(make_queue)
    await traced.work()
    for job in await traced.queue.add_many([{"data": i} for i in range(3)]):
        await job.result(10)
    (added,) = traced.spans("groupmq add")
    assert {link.context.span_id for ran in traced.spans("groupmq run") for link in ran.links} == {
        added.context.span_id
    }


async def test_a_job_added_without_tracing_runs_in_a_span_without_a_link(make_queue: MakeQueue) -> None:
    traced = Traced(make_queue)
    await traced.work()
    async with Queue(traced.queue.name, traced.queue._connection.endpoint.where) as plain:
        await (await plain.add("good")).result(10)
    (ran,) = traced.spans("groupmq run")
    assert not ran.links
