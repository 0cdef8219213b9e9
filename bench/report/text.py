"""The table on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.metrics import OURS, Metric, Samples, Verdict
from bench.peers.library import Library


def number(value: float | None) -> str:
    """As many digits as the measurement is worth: three or so."""
    if value is None:
        return "-"
    if value >= 1000:
        return f"{round(value, -2):,.0f}" if value >= 10_000 else f"{round(value, -1):,.0f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def times(metric: Metric, ours: float | None, peer: float | None) -> str:
    """Our figure as a multiple of the peer's, e.g. `2.9x`."""
    return f"{ours / peer:.2f}x" if ours is not None and peer else ""


def results(samples: Samples, libraries: Sequence[Library]) -> str:
    """One line per metric: medians of all libraries, and in brackets how we compare with each."""
    rows = [["", *(library.title for library in libraries)]]
    for metric in samples.metrics():
        ours = samples.median(metric.key, OURS)
        row = [f"{metric.title} [{metric.unit}]"]
        for library in libraries:
            value = samples.median(metric.key, library.key)
            compared = "" if library.key == OURS else times(metric, ours, value)
            row.append(number(value) + (f" ({compared})" if compared else ""))
        rows.append(row)
    return "\n".join(_aligned(rows))


def verdicts(found: Iterable[Verdict]) -> str:
    rows = [["target", "bound", "measured", ""]]
    for verdict in found:
        mark = "pass" if verdict.passed else "MISSED"
        rows.append([verdict.target.title, verdict.target.bound, f"{verdict.ratio:.2f}x", mark])
    return "\n".join(_aligned(rows))


def _aligned(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for index, row in enumerate(rows):
        first, *others = row
        cells = [first.ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        yield "  ".join(cells).rstrip()
        if index == 0:
            yield "  ".join("-" * width for width in widths)
