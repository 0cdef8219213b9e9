"""The options of `create_app`, checked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groupmq import ConfigurationError, Queue
from groupmq.dashboard.redaction import Redact, Redactor

Permissions = Callable[[str, str], bool | Awaitable[bool]]
"""permissions(user, action) -> whether this user may; action: "view", or the name of an action."""
AuditHook = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Options:
    """All options of the dashboard."""

    queues: tuple[str | Queue, ...] | None
    redis: Any
    prefix: str
    read_only: bool
    permissions: Permissions | None
    redactor: Redactor
    display_names: Mapping[str, str]
    descriptions: Mapping[str, str]
    audit: AuditHook | None

    @classmethod
    def checked(
        cls,
        queues: Sequence[str | Queue] | None,
        *,
        redis: Any,
        prefix: str,
        read_only: bool,
        permissions: Permissions | None,
        redact: Redact | Iterable[str] | None,
        display_names: Mapping[str, str] | None,
        descriptions: Mapping[str, str] | None,
        audit: AuditHook | None,
    ) -> Options:
        if isinstance(queues, str | Queue):
            queues = [queues]
        if queues is not None and not all(isinstance(queue, str | Queue) for queue in queues):
            raise ConfigurationError.expected(
                "queues", "names or Queue objects, or None for all queues of the server", queues
            )
        for argument, value in (("permissions", permissions), ("audit", audit)):
            if value is not None and not callable(value):
                raise ConfigurationError.expected(argument, "a function", value)
        return cls(
            queues=None if queues is None else tuple(queues),
            redis=redis,
            prefix=prefix,
            read_only=bool(read_only),
            permissions=permissions,
            redactor=Redactor(redact),
            display_names=dict(display_names or {}),
            descriptions=dict(descriptions or {}),
            audit=audit,
        )
