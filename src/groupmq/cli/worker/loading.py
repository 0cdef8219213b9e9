"""From MODULE:HANDLER and the options to a Worker; every mistake is one line."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import sys
import traceback
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from groupmq import ConfigurationError, GroupMQError, Queue, QueueNotFound, Worker, Workers
from groupmq.cli.exits import StartFailed
from groupmq.cli.options.values import backoff_of
from groupmq.cli.worker.plan import WorkerPlan
from groupmq.cli.worker.worker_set import WorkerSet

_logger = logging.getLogger("groupmq.cli")
_LOOK_AGAIN = 0.5
PATIENCE = 3.0
"""Seconds a server may be out of reach when the program starts, unless --unreachable-timeout says otherwise."""


def load(spec: str) -> Callable[..., Any] | Worker | Workers | Queue:
    """The object that `module:name` names: a handler, configured workers, or a queue with its handlers.

    The current folder is searched first.
    """
    module_name, colon, name = spec.partition(":")
    if not colon or not module_name or not name:
        raise ConfigurationError(f"{spec!r} is not MODULE:HANDLER, such as app.tasks:handle")
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module_name}.".startswith(f"{error.name}."):
            raise ConfigurationError(f"{spec}: there is no module {error.name!r} (looked in {folder} first)") from error
        raise StartFailed(_why(module_name, error)) from error
    except (Exception, SystemExit) as error:
        raise StartFailed(_why(module_name, error)) from error
    try:
        found = attrgetter(name)(module)
    except AttributeError:
        raise ConfigurationError(f"{spec}: module {module_name!r} has no {name!r}") from None
    if isinstance(found, Worker | Workers | Queue) or callable(found):
        return found  # type: ignore[no-any-return]
    raise ConfigurationError(
        f"{spec} is neither a handler (a callable) nor a Worker or Queue, but of type {type(found).__name__}"
    )


def _load_at_rest(spec: str) -> Callable[..., Any] | Worker | Workers | Queue:
    """Load while no event loop seems to run.

    Where a loop runs, `@queue.process` starts its worker at once: it would take jobs before the supervisor knows what
    to give back, even if the command names another handler, or if this process is about to refuse its options and end.
    """
    loop = asyncio.get_running_loop()
    asyncio._set_running_loop(None)
    try:
        return load(spec)
    finally:
        asyncio._set_running_loop(loop)


def _why(module: str, error: BaseException) -> str:
    """The error that a module raised while it was imported, and where, in one line."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    at = f" ({frames[-1].filename}, line {frames[-1].lineno})" if len(frames) > 1 else ""
    if isinstance(error, SyntaxError):
        at = f" ({error.filename}, line {error.lineno})"
    text = " ".join((error.msg if isinstance(error, SyntaxError) else _text_of(error)).split())
    return f"{module} cannot be imported: {type(error).__name__}: {text}{at}"


def _text_of(error: BaseException) -> str:
    """The text of an error; one whose own text raises must not hide where it was raised."""
    try:
        return str(error)
    except Exception:
        return "(its message cannot be read)"


async def make_workers(plan: WorkerPlan, waiting: Callable[[bool], None] = lambda reachable: None) -> WorkerSet | None:
    """The workers of a plan, their queues opened and found to accept writes. None: there is nothing to do.

    `waiting` is called while a queue does not exist yet, with True if its server answers.
    """
    found = _load_at_rest(plan.spec)
    if isinstance(found, Worker | Workers | Queue):
        return await _configured(plan, found)
    if not plan.queues:
        raise ConfigurationError("which queue? Name it with --queue, or set GROUPMQ_QUEUE")
    for name in plan.queues:
        await _try(plan, name, found)
    patience = plan.unreachable_timeout or PATIENCE
    queues = [await open_queue(plan, name, patience, waiting) for name in plan.queues]
    workers = [_worker(plan, queue, found) for queue in queues if queue is not None]
    if not workers:
        return None
    return WorkerSet(workers, Workers(workers, concurrency=plan.concurrency or 1) if len(plan.queues) > 1 else None)


async def _configured(plan: WorkerPlan, found: Worker | Workers | Queue) -> WorkerSet:
    """Workers that the module has made."""
    if plan.flags:
        kind = type(found).__name__
        raise ConfigurationError(
            f"{plan.spec} is a configured {kind}: {', '.join(plan.flags)} must be given where it is made"
        )
    if isinstance(found, Queue):
        if not found.workers:
            raise ConfigurationError(f"{plan.spec} is a queue without handlers: decorate one with @queue.process()")
        await found.ensure_writable(PATIENCE)
        return WorkerSet(found.workers, queue=found)
    workers = WorkerSet([found]) if isinstance(found, Worker) else WorkerSet(tuple(found), found)
    for worker in workers:
        await worker.queue.ensure_writable(PATIENCE)
    return workers


def _worker(plan: WorkerPlan, queue: Queue, handler: Callable[..., Any]) -> Worker:
    options = dict(plan.worker_options)
    if len(plan.queues) == 1:
        options["concurrency"] = 1 if plan.concurrency is None else plan.concurrency
    elif "name" in options:
        options["name"] += f"-{queue.name}"
    if "backoff" in options:
        options["backoff"] = backoff_of(options["backoff"])
    return Worker(queue, handler, unreachable_timeout=plan.unreachable_timeout, **options)


async def _try(plan: WorkerPlan, name: str, handler: Callable[..., Any]) -> None:
    """Check the options now: a mistake is reported even if the server is away or the queue does not exist yet."""
    async with Queue(name, plan.url, prefix=plan.prefix, **plan.queue_options, **plan.shared) as queue:
        _worker(plan, queue, handler)


async def open_queue(plan: WorkerPlan, name: str, patience: float, waiting: Callable[[bool], None]) -> Queue | None:
    """The queue as it is stored. Settings given on the command line must agree with it; the others are as stored.

    A queue that does not exist yet is made with the settings that were given. Without any, making it is left to the
    producer, whose settings would be refused if ours were there first; a burst then has nothing to do.
    """
    probe = _probe(plan, name, patience)
    try:
        await probe.ensure_writable(patience)
        try:
            await probe.get_job_counts()
        except QueueNotFound:
            if plan.burst:
                return None
            await _until_made(plan, name, waiting)
    finally:
        await probe.close()
    return Queue(name, plan.url, prefix=plan.prefix, **plan.queue_options, **plan.shared)


def _probe(plan: WorkerPlan, name: str, patience: float) -> Queue:
    """The queue, with any settings. One that does not exist is made only if settings were given."""
    options = {"prefix": plan.prefix, **plan.queue_options, **plan.shared}
    return Queue.attach(name, plan.url, make=bool(plan.shared or plan.queue_options), patience=patience, **options)


async def _until_made(plan: WorkerPlan, name: str, waiting: Callable[[bool], None]) -> None:
    _logger.info("queue %s does not exist yet; waiting until its producer adds the first job", name)
    waiting(True)
    async with _probe(plan, name, 0.0) as queue:
        while True:
            await asyncio.sleep(_LOOK_AGAIN)
            try:
                await queue.get_job_counts()
                return
            except QueueNotFound:
                waiting(True)
            except GroupMQError as error:
                waiting(False)
                _logger.warning("waiting for queue %s: %s; trying again", name, error)
