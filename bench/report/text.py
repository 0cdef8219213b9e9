"""The tables on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.grids import GRIDS, Grid
from bench.metrics import COMPARED, OURS, PYTHON, Lead, Metric, Samples
from bench.peers.library import Library
from bench.settings import Settings
from bench.targets import Verdict


def number(value: float | None) -> str:
    """A number with about three significant digits."""
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
    """Everything that was measured: first compared with the peers, then of groupmq alone."""
    found = [
        _beside_peers(samples, libraries),
        _beside_python(samples, libraries),
        *(_grid(grid, samples, settings) for grid in GRIDS),
    ]
    return [table for table in found if table]


def _beside_peers(samples: Samples, libraries: Sequence[Library]) -> str:
    """One line per metric: the medians of all libraries, and in brackets our ratio to each."""
    libraries = [library for library in libraries if library.kind != "python"]
    rows = [["", *(library.title for library in libraries)]]
    for metric in samples.metrics(COMPARED):
        ours = samples.reported(metric.key, OURS)
        row = [f"{metric.title} [{metric.unit}]"]
        for library in libraries:
            value = samples.reported(metric.key, library.key)
            row.append(number(value) + ("" if library.key == OURS else times(ours, value)))
        rows.append(row)
    return "\n".join(_aligned(rows)) if len(rows) > 1 else ""


def _beside_python(samples: Samples, libraries: Sequence[Library]) -> str:
    """One line per Python library, and in brackets our ratio to it."""
    metrics = samples.metrics(PYTHON)
    rows = [["", *(f"{metric.title} [{metric.unit}]" for metric in metrics)]]
    for library in libraries:
        if library.kind == "node" or (library.kind == "python" and library.key in samples.left_out):
            continue
        row = [f"{library.title} {library.version}"]
        for metric in metrics:
            value, ours = samples.reported(metric.key, library.key), samples.reported(metric.key, OURS)
            row.append(number(value) + ("" if library.key == OURS else times(ours, value)))
        rows.append(row)
    return "\n".join(_aligned(rows)) if metrics else ""


def leads(found: Sequence[Lead], libraries: Sequence[Library]) -> str:
    """The figures in which a peer is better, and by how much."""
    titles = {library.key: library.title for library in libraries}
    ahead: dict[Metric, list[str]] = {}
    for lead in found:
        ahead.setdefault(lead.metric, []).append(f"{titles[lead.library]} {lead.times:.2f}x")
    lines = [f"- {metric.title}: {', '.join(who)}" for metric, who in ahead.items()]
    return "\n".join(["a peer is ahead in:", *lines]) if lines else "no peer is ahead in anything that was measured"


def left_out(samples: Samples, libraries: Sequence[Library]) -> str:
    """Libraries that were not measured, or not to the end, with the first and last line of the reason."""
    titles = {library.key: library.title for library in libraries}
    lines = (f"{titles.get(key, key)}: {_short(reason)}" for key, reason in samples.left_out.items())
    return "\n".join(["not measured, or not to the end:", *lines])


def _short(reason: str) -> str:
    first, *others = reason.strip().splitlines() or [""]
    return f"{first}: {others[-1].strip()}" if others else first


def _grid(grid: Grid, samples: Samples, settings: Settings) -> str:
    """Medians under their columns, and in brackets the ratio of each to the first; empty if nothing was measured."""
    rows = [[settings.fill(title) for title in (grid.title, *grid.columns)]]
    for row in grid.rows:
        first, *others = [samples.reported(key, OURS) for key in row.keys]
        if first is None:
            continue
        cells = [number(value) + (times(value, first) if grid.ratios else "") for value in others]
        rows.append([f"{settings.fill(row.label)} [{row.unit}]", number(first), *cells])
    return "\n".join(_aligned(rows)) if len(rows) > 1 else ""


def verdicts(found: Iterable[Verdict]) -> str:
    rows = [["target", "must", "aim", "measured", ""]]
    for verdict in found:
        target = verdict.target
        rows.append([target.title, target.bound, target.wish, f"{verdict.ratio:.2f}x", verdict.word])
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
