"""One of several values that a reader can choose: a state, a sort order, a range."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from groupmq.dashboard.documents.record import record


@record
class Choice:
    value: str
    label: str
    count: int | None = None
    current: bool = False


def choices(
    labels: Mapping[str, str] | Iterable[str], current: str, counts: Mapping[str, int] | None = None
) -> list[Choice]:
    pairs = labels.items() if isinstance(labels, Mapping) else [(one, one) for one in labels]
    return [
        Choice(value=value, label=label, count=(counts or {}).get(value), current=value == current)
        for value, label in pairs
    ]
