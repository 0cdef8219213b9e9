"""Hooks around the life of a job: for tracing, logging, context. Each is optional; all but `adding` may be async."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from groupmq.core.errors import ConfigurationError

if TYPE_CHECKING:
    from groupmq.client.job import Job


class Middleware(Protocol):
    """The hooks that a middleware may have. Implement the ones you need.

    `before` runs in the handler's own context, so context variables set there are seen by the handler. An error
    in `before` fails the attempt as if the handler had raised it; `after` and `error` run in reverse order.
    """

    def adding(self, headers: dict[str, str]) -> None:
        """A job is being added: put values that should travel with it into its headers (text only)."""

    def before(self, job: Job) -> Awaitable[None] | None:
        """The handler is about to run."""

    def after(self, job: Job, result: Any) -> Awaitable[None] | None:
        """The handler has returned."""

    def error(self, job: Job, error: BaseException) -> Awaitable[None] | None:
        """The handler has raised, or was cancelled."""


HOOKS = ("adding", "before", "after", "error")


def checked(value: object) -> tuple[Any, ...]:
    """Check a sequence of middleware."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise ConfigurationError.expected("middleware", "a sequence of middleware", value)
    for one in value:
        if not any(callable(getattr(one, hook, None)) for hook in HOOKS):
            raise ConfigurationError.expected("middleware", f"objects with one of {', '.join(HOOKS)}", one)
    return tuple(value)


def headers(chain: Sequence[Any]) -> dict[str, str] | None:
    """The headers that the middleware of a queue puts into a job that is being added."""
    found: dict[str, str] = {}
    for one in chain:
        hook = getattr(one, "adding", None)
        if hook is not None:
            hook(found)
    return found or None


def around(chain: Sequence[Any], handler: Callable[[Job], Awaitable[Any]]) -> Callable[[Job], Awaitable[Any]]:
    """Wrap a handler in its middleware."""
    if not chain:
        return handler

    async def run(job: Job) -> Any:
        entered: list[Any] = []
        try:
            for one in chain:
                entered.append(one)
                await _call(one, "before", job)
            result = await handler(job)
        except BaseException as error:
            for one in reversed(entered):
                await _call(one, "error", job, error)
            raise
        for one in reversed(entered):
            await _call(one, "after", job, result)
        return result

    return run


async def _call(one: Any, hook: str, *args: Any) -> None:
    method = getattr(one, hook, None)
    if method is not None:
        outcome = method(*args)
        if inspect.isawaitable(outcome):
            await outcome
