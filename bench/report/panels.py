"""The panels of the chart: bars for each figure, first those compared with the peers, then those of groupmq alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bench.grids import GRIDS, Grid, Row
from bench.metrics import COMPARED, OURS, PYTHON, RATES, Metric, Samples
from bench.peers.library import Library
from bench.report.text import times
from bench.settings import Settings

COLOURS = {OURS: "#0f766e", "bullmq": "#94a3b8", "groupmq_node": "#94a3b8", "bee_queue": "#cbd5e1"}
NOT_DRAWN = frozenset(
    {
        "server_add",
        "server_process",
        "server_rows",
        "roundtrip_idle_count",
        "roundtrip_load_count",
        "roundtrip_rate",
        "add_p99",
        *(f"trickle_{rate}_{figure}" for rate in RATES for figure in ("start_p99", "result_p99", "reached")),
        "python_start_p99",
    }
)


@dataclass(frozen=True, slots=True)
class Bar:
    label: str
    value: float
    colour: str
    ours: bool
    compared: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    note: str
    bars: tuple[Bar, ...]


def all_of(samples: Samples, libraries: Sequence[Library], settings: Settings) -> list[Panel]:
    """A panel for every figure that is drawn and was measured."""
    ours = (_own_panel(grid, row, samples, settings) for grid in GRIDS for row in grid.rows if row.drawn)
    return [
        *_beside_peers(samples, libraries),
        *_beside_python(samples, libraries),
        *(panel for panel in ours if panel.bars),
    ]


def _beside_peers(samples: Samples, libraries: Sequence[Library]) -> Iterator[Panel]:
    return _beside(COMPARED, samples, [library for library in libraries if library.kind != "python"])


def _beside_python(samples: Samples, libraries: Sequence[Library]) -> Iterator[Panel]:
    """The panels of the Python libraries. Their notes have no ratios, since the bars of ten libraries show enough."""
    for panel in _beside(PYTHON, samples, [library for library in libraries if library.kind != "node"]):
        yield replace(panel, note=panel.note.partition(":")[0])


def _beside(metrics: Sequence[Metric], samples: Samples, libraries: Sequence[Library]) -> Iterator[Panel]:
    for metric in samples.metrics(metrics):
        if metric.key in NOT_DRAWN:
            continue
        bars = []
        for library in libraries:
            value = samples.reported(metric.key, library.key)
            if value is not None:
                mine = library.key == OURS
                bars.append(Bar(library.title, value, COLOURS.get(library.key, "#94a3b8"), mine))
        yield Panel(_heading(metric.title, metric.unit), _comparison(metric, samples, libraries), tuple(bars))


def _own_panel(grid: Grid, row: Row, samples: Samples, settings: Settings) -> Panel:
    """The columns of a row as bars; with `ratios`, each shows its ratio to the first."""
    bars: list[Bar] = []
    for column, key in zip(grid.columns, row.keys, strict=True):
        value = samples.reported(key, OURS)
        if value is not None:
            compared = times(value, bars[0].value) if grid.ratios and bars else ""
            bars.append(Bar(settings.fill(column), value, COLOURS[OURS], True, compared))
    note = f"{settings.fill(grid.title)}; {_note(row.more_is_better)}"
    return Panel(_heading(settings.fill(row.label), row.unit), note, tuple(bars))


def _heading(title: str, unit: str) -> str:
    return f"{title[0].upper()}{title[1:]} ({unit.replace('us', 'µs')})"


def _comparison(metric: Metric, samples: Samples, libraries: Sequence[Library]) -> str:
    ours = samples.reported(metric.key, OURS)
    ratios = []
    for library in libraries:
        peer = samples.reported(metric.key, library.key)
        if library.key != OURS and ours is not None and peer:
            ratios.append(f"{_times(ours / peer)} {library.title}")
    return _note(metric.more_is_better, ratios)


def _note(more_is_better: bool, ratios: Sequence[str] = ()) -> str:
    """E.g. `more is better: 2.9x BullMQ, 3.1x GroupMQ (Node)`."""
    direction = "more is better" if more_is_better else "less is better"
    return f"{direction}: {', '.join(ratios)}" if ratios else direction


def _times(ratio: float) -> str:
    return f"{ratio:.1f}x" if ratio >= 1 else f"{ratio:.2f}x"
