"""Plain commands to the server, as steps that the asynchronous and the blocking connection both carry out.

They are about the server, or about all of its queues; what is about one queue is a script. Every command sent this way
may be sent again without harm, so a lost connection is ridden over like that of any call.
"""

from __future__ import annotations

import random
import time
from collections.abc import Generator
from typing import Any, TypeVar

from groupmq.client.connection.faults import is_passing, understood
from groupmq.core.errors import GroupMQError

T = TypeVar("T")
Command = tuple[Any, ...]
Pause = float
Steps = Generator[Command | Pause, Any, T]

PATIENCE = 3.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


def ask(where: str, *command: Any, patience: float = PATIENCE) -> Steps[Any]:
    """The reply. Errors are ours; while the server cannot be reached, try again for up to `patience` seconds."""
    give_up, pause = time.monotonic() + patience, _FIRST_PAUSE
    while True:
        try:
            try:
                return (yield command)
            except Exception as error:
                raise understood(error, where) from error
        except GroupMQError as error:
            left = give_up - time.monotonic()
            if left <= 0 or not is_passing(error):
                raise
        yield min(left, pause * (0.5 + random.random()))  # noqa: S311
        pause = min(pause * 2, _LONGEST_PAUSE)


def decoded(value: Any) -> str:
    """Text, whatever the client was told about decoding."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
