"""The JSON file: every sample, the medians, the verdicts and the environment they were measured in."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from bench.metrics import Lead, Samples
from bench.peers.library import Library
from bench.settings import Settings
from bench.targets import Verdict


def machine() -> dict[str, Any]:
    """The properties that matter for comparing two runs, and nothing that identifies the machine."""
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
    leads: Sequence[Lead],
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
                "medians": {library.key: _rounded(samples.reported(metric.key, library.key)) for library in libraries},
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
                "must": verdict.target.bound,
                "aim": verdict.target.wish,
                "ratio": round(verdict.ratio, 3),
                "passed": verdict.passed,
                "aim_reached": verdict.target.reached(verdict.ratio),
            }
            for verdict in verdicts
        ],
        "peers_ahead": [
            {"metric": lead.metric.key, "library": lead.library, "times": round(lead.times, 3)} for lead in leads
        ],
        "left_out": samples.left_out,
        "seconds": {scenario: round(seconds, 1) for scenario, seconds in samples.seconds.items()},
    }


def raw(samples: Samples, environment: dict[str, Any]) -> str:
    """The raw values behind the figures: for each name and library a list per round, on its own line."""
    series = [
        f"{json.dumps(f'{what} {library}')}: {json.dumps([[round(value, 3) for value in one] for one in rounds])}"
        for (what, library), rounds in sorted(samples.raw.items())
    ]
    head = json.dumps({"date": datetime.now(UTC).isoformat(timespec="seconds"), **environment})
    return f'{{"run": {head}, "samples": {{\n' + ",\n".join(series) + "\n}}\n"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
