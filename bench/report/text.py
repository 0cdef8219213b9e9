"""The table on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.grids import GRIDS, Grid
from bench.metrics import COMPARED, OURS, Samples, Verdict
from bench.peers.library import Library
from bench.settings import Settings


def number(value: float | None) -> str:
    """As many digits as the measurement is worth: three or so."""
    if value is None:
        return "-"
    if value >= 1000:
        return f"{round(value, -2):,.0f}" if value >= 10_000 else f"{round(value, -1):,.0f}"
    if value >= 100 or value == int(value):
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def times(value: float | None, other: float | None) -> str:
    """A figure as a multiple of another, e.g. ` (2.90x)`."""
    return f" ({value / other:.2f}x)" if value is not None and other else ""


def tables(samples: Samples, libraries: Sequence[Library], settings: Settings) -> list[str]:
    """Everything that was measured: first beside the peers, then on our own."""
    found = [_beside_peers(samples, libraries), *(_grid(grid, samples, settings) for grid in GRIDS)]
    return [table for table in found if table]


def _beside_peers(samples: Samples, libraries: Sequence[Library]) -> str:
    """One line per metric: medians of all libraries, and in brackets how we compare with each."""
    rows = [["", *(library.title for library in libraries)]]
    for metric in samples.metrics(COMPARED):
        ours = samples.median(metric.key, OURS)
        row = [f"{metric.title} [{metric.unit}]"]
        for library in libraries:
            value = samples.median(metric.key, library.key)
            row.append(number(value) + ("" if library.key == OURS else times(ours, value)))
        rows.append(row)
    return "\n".join(_aligned(rows)) if len(rows) > 1 else ""


def _grid(grid: Grid, samples: Samples, settings: Settings) -> str:
    """Medians under their columns, and in brackets how each compares with the first; empty if nothing was measured."""
    rows = [[settings.fill(title) for title in (grid.title, *grid.columns)]]
    for row in grid.rows:
        first, *others = [samples.median(key, OURS) for key in row.keys]
        if first is None:
            continue
        cells = [number(value) + (times(value, first) if grid.ratios else "") for value in others]
        rows.append([f"{settings.fill(row.label)} [{row.unit}]", number(first), *cells])
    return "\n".join(_aligned(rows)) if len(rows) > 1 else ""


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
