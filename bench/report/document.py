"""The JSON file: every sample, the medians, the verdicts and what they were measured on."""

from __future__ import annotations

import dataclasses
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from bench.metrics import Samples, Verdict
from bench.peers.library import Library
from bench.settings import Settings


def machine() -> dict[str, Any]:
    """What matters for comparing two runs, and nothing that names the machine."""
    return {
        "cores": os.cpu_count(),
        "architecture": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "load_average": [round(load, 2) for load in os.getloadavg()],
    }


def build(
    samples: Samples,
    verdicts: Sequence[Verdict],
    libraries: Sequence[Library],
    settings: Settings,
    environment: dict[str, Any],
) -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        **environment,
        "settings": dataclasses.asdict(settings),
        "libraries": {library.key: {"title": library.title, "version": library.version} for library in libraries},
        "metrics": [
            {
                "key": metric.key,
                "title": settings.fill(metric.title),
                "unit": metric.unit,
                "more_is_better": metric.more_is_better,
                "medians": {library.key: _rounded(samples.median(metric.key, library.key)) for library in libraries},
                "samples": {
                    library.key: [_rounded(value) for value in samples.get(metric.key, library.key)]
                    for library in libraries
                },
            }
            for metric in samples.metrics()
        ],
        "targets": [
            {
                "title": verdict.target.title,
                "bound": verdict.target.bound,
                "ratio": round(verdict.ratio, 3),
                "passed": verdict.passed,
            }
            for verdict in verdicts
        ],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
