# Generated from src/groupmq/client/partitions/overriding.py by `make sync`; do not edit.
"""How a queue with partitions overrides a method. The signature of the method stays in `QueueMethods` alone.

A queue with one partition uses the method of `QueueMethods` unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar, cast

from groupmq.core.checks import text
from groupmq.core.partitions import place_of

if TYPE_CHECKING:
    from groupmq.sync.partitions.routing import Routing

M = TypeVar("M", bound=Callable[..., Any])


def by_id(method: M) -> M:
    """The same method, called on the partition of the job."""

    @wraps(method)
    def routed(self: Routing, job_id: str, *args: Any, **kwargs: Any) -> Any:
        if not self._learn():
            return method(self, job_id, *args, **kwargs)
        part = self._home_of(text(job_id, "job_id"))
        return method(part, job_id, *args, **kwargs)

    return cast(M, routed)


def by_group(method: M) -> M:
    """The same method, called on the partition of the group."""

    @wraps(method)
    def routed(self: Routing, group_id: str, *args: Any, **kwargs: Any) -> Any:
        if not self._learn():
            return method(self, group_id, *args, **kwargs)
        part = self._at(place_of(text(group_id, "group_id")))
        return method(part, group_id, *args, **kwargs)

    return cast(M, routed)


def informed(method: M) -> M:
    """The same method, called once it is known how many partitions there are."""

    @wraps(method)
    def learned(self: Routing, *args: Any, **kwargs: Any) -> Any:
        self._learn()
        return method(self, *args, **kwargs)

    return cast(M, learned)


def across(method: M) -> Callable[[Callable[..., Any]], M]:
    """The same method, done by the decorated function if there are partitions.

    The function gets every argument: those that the caller left out as `method` declares them.
    """

    def decorate(function: Callable[..., Any]) -> M:
        @wraps(method)
        def spread(self: Routing, *args: Any, **kwargs: Any) -> Any:
            if not self._learn():
                return method(self, *args, **kwargs)
            given = signature(method).bind(self, *args, **kwargs)
            given.apply_defaults()
            return function(*given.args, **given.kwargs)

        return cast(M, spread)

    return decorate
