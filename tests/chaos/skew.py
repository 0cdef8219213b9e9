"""Processes whose clock is wrong: Python's wall clock is shifted, its monotonic clock is not."""

from __future__ import annotations

import datetime
import sys
import time
from typing import Any

true_time = time.time
_datetime = datetime.datetime


def shift(seconds: float) -> None:
    """Shift the wall clock of this process, also for modules that have already imported `datetime`."""
    nanoseconds, true_ns = round(seconds * 1e9), time.time_ns
    vars(time)["time"] = lambda: true_time() + seconds
    vars(time)["time_ns"] = lambda: true_ns() + nanoseconds
    by = datetime.timedelta(seconds=seconds)

    class AnyDatetime(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, _datetime)

    class Shifted(_datetime, metaclass=AnyDatetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return _datetime.now(tz) + by

        @classmethod
        def utcnow(cls) -> Any:
            return _datetime.now(datetime.UTC).replace(tzinfo=None) + by

    for module in list(sys.modules.values()):
        if getattr(module, "datetime", None) is _datetime:
            vars(module)["datetime"] = Shifted
