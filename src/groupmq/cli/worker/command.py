"""`groupmq worker`: run a handler, in one process or in several under supervision."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from groupmq import GroupMQError, Queue
from groupmq.cli.exits import BAD_USAGE, code_of, fail
from groupmq.cli.exporter import metrics_page, new_registry, queue_collector
from groupmq.cli.options.running import PORT, running_options
from groupmq.cli.options.target import Target, several_queues_options
from groupmq.cli.options.values import BACKOFF, DURATION
from groupmq.cli.output import logs
from groupmq.cli.output.http_pages import Make, Pages, serve
from groupmq.cli.worker import lifecycle
from groupmq.cli.worker.health import ProcessReport, probes
from groupmq.cli.worker.plan import WorkerPlan
from groupmq.cli.worker.reload import Watch
from groupmq.cli.worker.supervisor import Supervisor
from groupmq.cli.worker.worker_set import WorkerSet

_SHARED = ("exclusive", "group_concurrency", "on_failed")
_QUEUE = ("job_timeout", "on_retry", "keep_completed", "keep_failed")
_WORKER = ("executor", "name", "maintenance", "batch_size", "backoff", "max_attempts")
_SPELLED = {"maintenance": "--no-maintenance", "concurrency": "--concurrency"}


@click.command()
@click.argument("spec", metavar="MODULE:HANDLER")
@several_queues_options
@click.option(
    "--concurrency",
    "-c",
    type=int,
    envvar="GROUPMQ_CONCURRENCY",
    help="Jobs at once in each process, over all its queues. [default: 1]",
)
@click.option("--processes", type=click.IntRange(1, 256), help="Worker processes, under supervision.")
@click.option("--burst", is_flag=True, help="Exit when no job is runnable.")
@click.option("--reload", is_flag=True, help="Start again when a .py file under this folder changes.")
@click.option("--no-maintenance", is_flag=True, help="Leave repeats and clean-up to scheduler and recovery.")
@click.option("--exclusive", is_flag=True, default=None, help="Only one worker of the queue at a time takes jobs.")
@click.option("--group-concurrency", type=int, help="Jobs of one group at once. [default: as stored, else 1]")
@click.option("--executor", type=click.Choice(("thread", "process")), help="Where def handlers run. [default: thread]")
@click.option("--job-timeout", type=DURATION, metavar="TIME", help="Lease of a running job. [default: as stored]")
@click.option("--max-attempts", type=int, help="Attempts of a job that sets none. [default: as stored]")
@click.option("--backoff", type=BACKOFF, metavar="TIME", help="Pause before a retry: 5, 500ms, or 1s..5m, which grows.")
@click.option(
    "--on-retry", type=click.Choice(("hold", "yield")), help="What a group does until a retry. [default: as stored]"
)
@click.option(
    "--on-failed",
    type=click.Choice(("continue", "hold")),
    help="hold: a job that failed for good blocks its group. [default: as stored]",
)
@click.option("--batch-size", type=int, metavar="N", help="Jobs per turn of an exclusive queue. [default: concurrency]")
@click.option("--keep-completed", type=int, help="Completed jobs to keep. [default: as stored]")
@click.option("--keep-failed", type=int, help="Failed jobs to keep. [default: as stored]")
@click.option("--name", help="Name of the worker. [default: queue name and an id]")
@click.option(
    "--drain-timeout",
    type=DURATION,
    default=30.0,
    show_default=True,
    metavar="TIME",
    help="Time that running jobs have after the first SIGTERM.",
)
@click.option("--metrics-port", type=PORT, help="Serve /metrics for Prometheus on this port.")
@running_options
def worker(
    target: Target,
    spec: str,
    processes: int | None,
    burst: bool,
    reload: bool,
    no_maintenance: bool,
    drain_timeout: float,
    metrics_port: int | None,
    unreachable_timeout: float | None,
    health_port: int | None,
    bind: str,
    log_level: str,
    log_format: str | None,
    **options: Any,
) -> None:
    """Run the jobs of a queue with your handler.

    MODULE:HANDLER is looked for in the current folder first. It may also name a configured Worker or Workers, or a
    Queue, whose handlers were decorated with @queue.process(). Several --queue share the --concurrency of a process.

    \b
    groupmq worker app.tasks:handle --queue orders -c 8
    groupmq worker app.tasks:handle --queue orders --processes 4 --health-port 8080 --metrics-port 9464

    After the first SIGTERM or Ctrl-C the worker takes no new jobs and lets the running ones end; the second gives them
    back at once; the third exits. Settings that are not given here are as stored with the queue; those that are given
    must agree with it, except --max-attempts and --backoff, which belong to the worker.

    Exit codes: 0 done, 1 failed to start or kept crashing, 2 bad usage, 3 server unreachable.
    """
    form = log_format or ("json" if target.as_json else "text")
    logs.set_up(log_level, form)
    given = {name: value for name, value in options.items() if value is not None}
    if no_maintenance:
        given["maintenance"] = False
    plan = WorkerPlan(
        spec,
        target.url,
        target.queues,
        target.prefix,
        shared={name: given[name] for name in _SHARED if name in given},
        queue_options={name: given[name] for name in _QUEUE if name in given},
        worker_options={name: given[name] for name in _WORKER if name in given},
        concurrency=given.get("concurrency"),
        flags=_flags(given, unreachable_timeout),
        burst=burst,
        drain_timeout=drain_timeout,
        unreachable_timeout=unreachable_timeout,
        log_level=log_level,
        log_format=form,
    )
    ports = {"health": health_port, "metrics": metrics_port}
    registry = None if metrics_port is None else new_registry()
    if reload and burst:
        fail("--reload and --burst exclude each other", BAD_USAGE)
    try:
        if processes is None and not reload:
            code = lifecycle.run(_alone(plan, ports, bind, registry))
        else:
            code = lifecycle.run(_supervised(plan, processes or 1, reload, ports, bind, registry))
    except GroupMQError as error:
        logs.last_words(str(error), form)
        code = code_of(error)
    sys.exit(code)


def _flags(given: dict[str, Any], unreachable_timeout: float | None) -> tuple[str, ...]:
    """The options that a configured Worker decides itself, as they are spelled; the environment does not count."""
    context = click.get_current_context()
    spelled = [_SPELLED.get(name, f"--{name.replace('_', '-')}") for name in given]
    for name in ("queues", "redis_url", "prefix"):
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            spelled.append(f"--{name.removesuffix('s').replace('_', '-')}")
    return tuple(spelled + (["--unreachable-timeout"] if unreachable_timeout is not None else []))


async def _alone(plan: WorkerPlan, ports: dict[str, int | None], bind: str, registry: Any) -> int:
    """One worker in this process."""
    life = lifecycle.WorkerLifecycle(plan, 0, lambda report: None, None)
    pages = _serve(ports, bind, lambda: [life.report], registry)
    closing: list[Callable[[], None]] = [page.close for page in pages]

    def started(workers: WorkerSet) -> None:
        if registry is not None:
            queue = workers.workers[0].queue
            names = list(dict.fromkeys(worker.queue.name for worker in workers))
            collector, close = queue_collector(names, queue, queue.options.prefix)
            registry.register(collector)
            closing.append(close)

    try:
        return await life.run(started)
    finally:
        for close in closing:
            close()


async def _supervised(
    plan: WorkerPlan, processes: int, reload: bool, ports: dict[str, int | None], bind: str, registry: Any
) -> int:
    """Several worker processes, and this one, which supervises them."""
    # An embedded server belongs to the first process that asks for it: to us, so that all children share it.
    Queue.address_of(plan.url)
    supervisor = Supervisor(plan, processes, Watch(Path.cwd()) if reload else None)
    if registry is not None and plan.queues:
        registry.register(queue_collector(list(plan.queues), plan.url, plan.prefix)[0])
    pages = _serve(ports, bind, supervisor.reports, registry)
    try:
        return await supervisor.run()
    finally:
        for page in pages:
            page.close()


def _serve(
    ports: dict[str, int | None],
    bind: str,
    reports: Callable[[], Iterable[ProcessReport]],
    registry: Any,
) -> list[Pages]:
    """The pages of the ports that were asked for."""
    pages: dict[str, dict[str, Make]] = {"health": probes(reports), "metrics": {}}
    if registry is not None:
        from groupmq.metrics import WorkerCollector, WorkerSample

        def samples() -> Iterable[WorkerSample]:
            for report in reports():
                for one in report.workers:
                    values = {**one["counters"], **report.counters}
                    values["uptime_seconds"] = values.pop("uptime", 0.0)
                    values |= {"concurrency": one["concurrency"], "ready": int(report.is_ready())}
                    values["loop_blocked_seconds"] = report.blocked_for()
                    yield WorkerSample(one["queue"], report.process, values)

        registry.register(WorkerCollector(samples))
        pages["metrics"] = metrics_page(registry)
    return serve(bind, ports, pages)
