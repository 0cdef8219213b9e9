"""The whole life of many jobs: add them in bulk, let them wait, process them at concurrency 100."""

from __future__ import annotations

from collections.abc import Iterator

from bench.scenarios.context import Context, Sample, Scenario


def run(context: Context) -> Iterator[Sample]:
    """All figures come from one run, so that they belong together.

    Memory is read while no library process is connected, since buffers of connections are not the cost of a job.
    """
    server, jobs = context.server, context.settings.jobs
    server.reset()
    before = server.used_memory()
    with context.meter.measure() as adding:
        added = context.enqueue(jobs)
    yield "enqueue", added.rate
    yield "memory", (server.used_memory() - before) / jobs

    with context.meter.measure() as processing:
        processed = context.process(jobs, concurrency=100)
    yield "process_100", processed.rate

    cost = adding[0] + processing[0]
    yield "server_time", cost.command_us / jobs
    yield "server_add", adding[0].command_us / jobs
    yield "server_process", processing[0].command_us / jobs
    yield "server_rows", cost.rows_us / jobs
    yield "server_cpu", cost.cpu_us / jobs


SCENARIO = Scenario("lifecycle", "add, wait, process at concurrency 100", run)
