"""The chart: a bar panel per figure and the list of targets, as plain SVG without a plotting library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from bench.report.panels import Panel
from bench.report.text import number
from bench.targets import Verdict

WIDTH = 1080
MARGIN = 32
GUTTER = 24
HEADER = 108
COLUMNS = 2
PANEL_HEAD = 62
BAR, BAR_GAP, PANEL_FOOT = 18, 9, 14
LABEL_WIDTH, VALUE_WIDTH = 124, 112
ROW = 26

INK, QUIET, LINE, PASS, MISS = "#0f172a", "#64748b", "#e2e8f0", "#15803d", "#b91c1c"
FONT = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', 'DejaVu Sans', sans-serif"

FOOTNOTE = (
    "Ratios are groupmq's figure divided by the peer's, or by that of the first bar. "
    "Open-source BullMQ and bee-queue have no groups."
)


def render(panels: Sequence[Panel], verdicts: Sequence[Verdict], subtitle: str) -> str:
    """Render the whole chart."""
    width = (WIDTH - 2 * MARGIN - (COLUMNS - 1) * GUTTER) // COLUMNS
    body: list[str] = []
    top = HEADER
    for start in range(0, len(panels), COLUMNS):
        row = panels[start : start + COLUMNS]
        height = max(_panel_height(panel) for panel in row)
        for column, panel in enumerate(row):
            body += _draw_panel(panel, MARGIN + column * (width + GUTTER), top, width, height)
        top += height + GUTTER
    if verdicts:
        body += _draw_targets(verdicts, top)
        top += PANEL_HEAD - 12 + ROW * len(verdicts) + PANEL_FOOT + GUTTER
    height = top - GUTTER + MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'viewBox="0 0 {WIDTH} {height}" font-family="{FONT}" role="img">',
            "<title>groupmq beside its peers</title>",
            f'<rect width="{WIDTH}" height="{height}" fill="#f8fafc"/>',
            _text(MARGIN, 44, "groupmq beside its peers", size=24, weight=700),
            _text(MARGIN, 68, subtitle, size=13, fill=QUIET),
            _text(MARGIN, 88, FOOTNOTE, size=13, fill=QUIET),
            *body,
            "</svg>\n",
        ]
    )


def _panel_height(panel: Panel) -> int:
    return PANEL_HEAD + len(panel.bars) * (BAR + BAR_GAP) - BAR_GAP + PANEL_FOOT


def _draw_panel(panel: Panel, left: int, top: int, width: int, height: int) -> Iterator[str]:
    yield _card(left, top, width, height)
    yield _text(left + 16, top + 26, panel.title, size=15, weight=600)
    yield _text(left + 16, top + 45, panel.note, size=12, fill=QUIET)
    largest = max(bar.value for bar in panel.bars) or 1.0
    room = width - 32 - LABEL_WIDTH - VALUE_WIDTH
    for index, bar in enumerate(panel.bars):
        y = top + PANEL_HEAD + index * (BAR + BAR_GAP)
        x = left + 16 + LABEL_WIDTH
        length = max(2.0, room * bar.value / largest)
        weight = 600 if bar.ours else 400
        yield _text(x - 10, y + BAR - 5, bar.label, size=12.5, weight=weight, anchor="end")
        yield f'<rect x="{x}" y="{y}" width="{length:.1f}" height="{BAR}" rx="3" fill="{bar.colour}"/>'
        yield _text(x + length + 8, y + BAR - 5, number(bar.value) + bar.compared, size=12.5, weight=weight)


def _draw_targets(verdicts: Sequence[Verdict], top: int) -> Iterator[str]:
    width = WIDTH - 2 * MARGIN
    yield _card(MARGIN, top, width, PANEL_HEAD - 12 + ROW * len(verdicts) + PANEL_FOOT)
    yield _text(MARGIN + 16, top + 26, "Targets", size=15, weight=600)
    for column, name in ((560, "measured"), (680, "must"), (800, "aim")):
        yield _text(MARGIN + column, top + 26, name, size=12, fill=QUIET, anchor="end")
    for index, verdict in enumerate(verdicts):
        y = top + PANEL_HEAD - 12 + index * ROW + 15
        colour, mark = PASS if verdict.passed else MISS, verdict.word.lower()
        yield f'<path d="M{MARGIN + 16} {y - 18}H{WIDTH - MARGIN - 16}" stroke="{LINE}"/>'
        yield _text(MARGIN + 16, y, verdict.target.title, size=13)
        yield _text(MARGIN + 560, y, f"{verdict.ratio:.2f}x", size=13, weight=600, anchor="end")
        yield _text(MARGIN + 680, y, verdict.target.bound, size=13, fill=QUIET, anchor="end")
        yield _text(MARGIN + 800, y, verdict.target.wish, size=13, fill=QUIET, anchor="end")
        yield _text(WIDTH - MARGIN - 16, y, mark, size=13, weight=600, fill=colour, anchor="end")


def _card(left: int, top: int, width: int, height: int) -> str:
    box = f'x="{left}" y="{top}" width="{width}" height="{height}"'
    return f'<rect {box} rx="8" fill="#ffffff" stroke="{LINE}"/>'


def _text(
    x: float,
    y: float,
    content: str,
    *,
    size: float,
    weight: int = 400,
    fill: str = INK,
    anchor: str = "start",
) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" font-weight="{weight}" fill="{fill}" '
        f'text-anchor="{anchor}">{escape(content)}</text>'
    )
