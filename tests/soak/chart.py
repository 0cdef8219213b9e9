"""A chart of the samples as plain SVG, without a plotting library."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from tests.soak.verdict import MB, Sample, Verdict

WIDTH, MARGIN, GUTTER, HEADER = 1080, 32, 24, 92
PANEL, PLOT_TOP, PLOT_FOOT, PLOT_LEFT = 210, 52, 30, 64
COLUMNS = 2
INK, QUIET, LINE, PASS, MISS = "#0f172a", "#64748b", "#e2e8f0", "#15803d", "#b91c1c"
COLOURS = ("#0f766e", "#b45309", "#1d4ed8", "#be185d", "#4d7c0f", "#6d28d9")
FONT = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', 'DejaVu Sans', sans-serif"


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    lines: dict[str, list[tuple[float, float]]]


def panels(samples: Sequence[Sample]) -> list[Panel]:
    def of(value: Any) -> list[tuple[float, float]]:
        return [(s["t"], found) for s in samples if (found := value(s)) is not None]

    stayed = sorted(set(samples[0]["processes"]) & set(samples[-1]["processes"]))

    def each(what: str, unit: float = 1) -> dict[str, list[tuple[float, float]]]:
        def one(name: str) -> list[tuple[float, float]]:
            told = [(s["t"], s["processes"].get(name, {}).get(what)) for s in samples]
            return [(t, value / unit) for t, value in told if value is not None]

        return {name: one(name) for name in stayed}

    server = {
        "data": of(lambda s: (s["server"]["memory"] - s["server"]["logs"]) / MB),
        "event logs": of(lambda s: s["server"]["logs"] / MB),
        "rss": of(lambda s: s["server"]["rss"] / MB),
    }
    return [
        Panel("Memory of the server (MB)", server),
        Panel("Resident memory of processes (MB)", each("rss", MB)),
        Panel("Keys", {"all": of(lambda s: s["keys"]["all"]), "groups": of(lambda s: s["keys"].get("g:*", 0))}),
        Panel("Open descriptors", each("fds")),
        Panel(
            "Jobs and groups alive",
            {"jobs": of(lambda s: s["jobs"].get("backlog")), "groups": of(lambda s: s["jobs"].get("groups"))},
        ),
        Panel("asyncio tasks", each("tasks")),
        Panel("Slowest call since the last sample (ms)", {"slowest": of(lambda s: s["calls"]["slowest_us"] / 1000)}),
        Panel("Server time of a call (µs)", {"mean": of(lambda s: s["calls"]["mean_us"])}),
        Panel("Jobs completed in a second", {"jobs/s": _rate(of(lambda s: s["jobs"].get("completed")))}),
        Panel("Python objects (thousands)", each("objects", 1000)),
    ]


def _rate(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    return [(t, (b - a) / (t - s)) for (s, a), (t, b) in itertools.pairwise(points) if t > s]


def render(samples: Sequence[Sample], verdict: Verdict, subtitle: str) -> str:
    width = (WIDTH - 2 * MARGIN - (COLUMNS - 1) * GUTTER) // COLUMNS
    body: list[str] = []
    drawn = panels(samples)
    for n, panel in enumerate(drawn):
        row, column = divmod(n, COLUMNS)
        body += _draw(panel, MARGIN + column * (width + GUTTER), HEADER + row * (PANEL + GUTTER), width)
    height = HEADER + -(-len(drawn) // COLUMNS) * (PANEL + GUTTER) - GUTTER + MARGIN
    said = "flat: nothing grew" if verdict.is_flat else "; ".join([str(row) for row in verdict.grew] + verdict.other)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'viewBox="0 0 {WIDTH} {height}" font-family="{FONT}" role="img">',
            "<title>groupmq over time</title>",
            f'<rect width="{WIDTH}" height="{height}" fill="#f8fafc"/>',
            _text(MARGIN, 40, "groupmq over time", size=22, weight=700),
            _text(MARGIN, 60, subtitle, size=13, fill=QUIET),
            _text(MARGIN, 79, said[:150], size=13, fill=PASS if verdict.is_flat else MISS, weight=600),
            *body,
            "</svg>\n",
        ]
    )


def _draw(panel: Panel, left: int, top: int, width: int) -> Iterator[str]:
    yield f'<rect x="{left}" y="{top}" width="{width}" height="{PANEL}" rx="8" fill="#ffffff" stroke="{LINE}"/>'
    yield _text(left + 16, top + 26, panel.title, size=15, weight=600)
    points = [point for line in panel.lines.values() for point in line]
    if not points:
        return
    end = max(t for t, _ in points) or 1.0
    highest = max(value for _, value in points) * 1.08 or 1.0
    x0, y0 = left + PLOT_LEFT, top + PANEL - PLOT_FOOT
    w, h = width - PLOT_LEFT - 20, PANEL - PLOT_TOP - PLOT_FOOT
    for share in (0.0, 0.5, 1.0):
        y = y0 - share * h
        yield f'<path d="M{x0} {y:g}H{x0 + w}" stroke="{LINE}"/>'
        yield _text(x0 - 8, y + 4, _number(highest * share), size=11, fill=QUIET, anchor="end")
    for share in (0.0, 0.5, 1.0):
        anchor = ("start", "middle", "end")[int(share * 2)]
        yield _text(x0 + share * w, y0 + 18, f"{end * share / 60:.1f} min", size=11, fill=QUIET, anchor=anchor)
    x = left + width - 16.0
    for (name, line), colour in reversed(list(zip(panel.lines.items(), COLOURS, strict=False))):
        yield _text(x, top + 44, name, size=11.5, fill=colour, weight=600, anchor="end")
        x -= 7 * len(name) + 14
        path = "L".join(f"{x0 + t / end * w:.1f} {y0 - value / highest * h:.1f}" for t, value in line)
        if path:
            yield f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.3" stroke-linejoin="round"/>'


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def _text(
    x: float, y: float, content: str, *, size: float, weight: int = 400, fill: str = INK, anchor: str = "start"
) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" font-weight="{weight}" fill="{fill}" '
        f'text-anchor="{anchor}">{escape(content)}</text>'
    )
