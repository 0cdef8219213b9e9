"""The lines that the library logs about a job."""

from __future__ import annotations

from typing import Any

import pytest

Line = tuple[str, str, str]


def lines(caplog: pytest.LogCaptureFixture, job: Any) -> list[Line]:
    """The level, logger and text of each line about a job."""
    about = f"job {job.id!r} (queue '{job._queue.name}', "
    found = [record for record in caplog.records if record.getMessage().startswith(about)]
    return [(record.levelname, record.name, record.getMessage().removeprefix(about)) for record in found]
