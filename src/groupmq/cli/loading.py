"""From MODULE:HANDLER and the options to a Worker; every mistake is one line."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from groupmq import commands
from groupmq.cli.plan import Plan
from groupmq.connection import PATIENCE
from groupmq.errors import ConfigurationError, GroupMQError, QueueNotFound, said
from groupmq.faults import is_passing, understood
from groupmq.limits import RateLimit
from groupmq.ordering import Ordering
from groupmq.queue import Queue
from groupmq.worker import Worker

_logger = logging.getLogger("groupmq.cli")
_LOOK_AGAIN = 0.5


class StartFailed(GroupMQError):
    """The worker cannot start, though it was asked for correctly."""


def load(spec: str) -> Callable[..., Any] | Worker:
    """The handler, or the configured Worker, that `module:name` stands for; the current folder is looked in first."""
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
    if isinstance(found, Worker) or callable(found):
        return found  # type: ignore[no-any-return]
    raise ConfigurationError(
        f"{spec} is neither a handler (a callable) nor a Worker, but of type {type(found).__name__}"
    )


def _why(module: str, error: BaseException) -> str:
    """What a module raised while it was imported, and where, in one line."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    at = f" ({frames[-1].filename}, line {frames[-1].lineno})" if len(frames) > 1 else ""
    if isinstance(error, SyntaxError):
        at = f" ({error.filename}, line {error.lineno})"
    text = " ".join((error.msg if isinstance(error, SyntaxError) else said(error)).split())
    return f"{module} cannot be imported: {type(error).__name__}: {text}{at}"


async def make_worker(plan: Plan, waiting: Callable[[bool], None] = lambda reachable: None) -> Worker | None:
    """The worker of a plan, its queue opened and found to accept writes. None: there is nothing to do.

    `waiting` hears, while the queue is not there yet, whether its server is.
    """
    found = load(plan.spec)
    if isinstance(found, Worker):
        if plan.flags:
            raise ConfigurationError(
                f"{plan.spec} is a configured Worker: {', '.join(plan.flags)} must be said where it is made"
            )
        await require_writable(found.queue, PATIENCE)
        return found
    await _try(plan, found)
    queue = await open_queue(plan, plan.unreachable_timeout or PATIENCE, waiting)
    return None if queue is None else _worker(plan, queue, found)


def _worker(plan: Plan, queue: Queue, handler: Callable[..., Any]) -> Worker:
    return Worker(queue, handler, unreachable_timeout=plan.unreachable_timeout, **plan.worker_options)


async def _try(plan: Plan, handler: Callable[..., Any]) -> None:
    """Have the options checked now: a mistake must not wait for the server, or for the queue to be made."""
    if not plan.queue:
        raise ConfigurationError("which queue? Name it with --queue, or set GROUPMQ_QUEUE")
    async with Queue(plan.queue, plan.url, prefix=plan.prefix, **plan.queue_options, **plan.shared) as queue:
        _worker(plan, queue, handler)


async def open_queue(plan: Plan, patience: float, waiting: Callable[[bool], None]) -> Queue | None:
    """The queue as it is stored. What was given on the command line must agree; the rest is adopted.

    A queue that nobody has made yet is made by what was given. If nothing was, that is left to the producer: its
    settings would be refused if ours were there first. A burst then has nothing to do.
    """
    assert plan.queue  # noqa: S101
    probe = Queue(plan.queue, plan.url, prefix=plan.prefix, **plan.queue_options, **plan.shared)
    probe.connection.dialogue.accept_stored_settings(make=bool(plan.shared))
    try:
        await require_writable(probe, patience)
        try:
            await probe.connection.call(commands.counts(), patience)
        except QueueNotFound:
            if plan.burst:
                return None
            await _until_made(probe, waiting)
        stored = await _stored(probe)
    finally:
        await probe.close()
    settings = settings_from(plan.queue, stored) | plan.shared
    return Queue(plan.queue, plan.url, prefix=plan.prefix, **plan.queue_options, **settings)


async def require_writable(queue: Queue, patience: float) -> None:
    """Raise if the server cannot be reached, or takes no writes; a worker could only wait there."""
    # Opening a queue and looking at it write nothing, so a replica would be found out by the first job only.
    give_up = asyncio.get_running_loop().time() + patience
    while True:
        try:
            await command(queue, "UNLINK", queue.connection.dialogue.keys.hail("nobody"))
            return
        except GroupMQError as error:
            if not is_passing(error) or asyncio.get_running_loop().time() >= give_up:
                raise
        await asyncio.sleep(0.1)


async def command(queue: Queue, *parts: Any) -> Any:
    """A plain command; its errors are ours."""
    try:
        return await queue.connection.command(*parts)
    except Exception as error:
        raise understood(error, queue.connection.endpoint.where) from error


async def _until_made(queue: Queue, waiting: Callable[[bool], None]) -> None:
    _logger.info("queue %s: nobody has added anything yet; waiting for its producer", queue.name)
    waiting(True)
    while True:
        await asyncio.sleep(_LOOK_AGAIN)
        try:
            await queue.connection.call(commands.counts(), 0.0)
            return
        except QueueNotFound:
            waiting(True)
        except GroupMQError as error:
            waiting(False)
            _logger.warning("%s; trying again", error)


async def _stored(queue: Queue) -> dict[str, Any]:
    raw = await command(queue, "HGET", queue.connection.dialogue.keys.meta, "config")
    return dict(json.loads(raw)) if raw else {}


def settings_from(name: str, stored: dict[str, Any]) -> dict[str, Any]:
    """What to pass to Queue to agree with what is stored, the reverse of `QueueOptions.shared`."""
    settings: dict[str, Any] = {}
    for key, value in stored.items():
        if key == "ordering" and value is not None:
            kind = {"event_time": Ordering.event_time, "arrival": Ordering.arrival}[value["kind"]]
            settings[key] = kind(**{part: value[part] for part in value if part != "kind"})
        elif key in ("rate_limit", "group_rate_limit") and value is not None:
            settings[key] = RateLimit(value["count"], per=value["per"])
        elif key in _PLAIN or value is None:
            settings[key] = value
        else:
            raise ConfigurationError(
                f"queue {name!r} is stored with {key}={value!r}, which this release of groupmq does not know"
            )
    return settings


_PLAIN = ("group_concurrency", "fairness", "exclusive", "events", "max_group_size", "priority_ageing")
