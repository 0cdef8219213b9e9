"""S14 to S18, from samples of all keys: during the run, after it, and after everything was removed."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker.finding import Finding
from tests.chaos.checker.story import Story

KEPT = {"completed": 400, "failed": 3000}
_OF_WAKE_UPS = ("parked", "ready", "nobody looks", "head must wait", "may start")


def check(story: Story) -> Iterator[Finding]:
    for line in story.of_kind("sample"):
        for wrong in line["wrong"]:
            rule = "S16" if any(word in wrong for word in _OF_WAKE_UPS) else "S15"
            yield Finding(rule, f"{story.when_ms(line['at'])}: {wrong}")
        for q, kept in line["kept"].items():
            for state, most in KEPT.items():
                if kept[state] > most:
                    text = f"{q} keeps {kept[state]} {state} jobs {story.when_ms(line['at'])}, more than {most}"
                    yield Finding("S14", text)
    for line in story.of_kind("left"):
        if line["counts"] != line["listed"]:
            yield Finding("S15", f"{line['q']} counts {line['counts']} and lists {line['listed']}")
    yield from _repairs(story)
    for line in story.of_kind("foreign"):
        for key in line["keys"]:
            yield Finding("S18", f"key {key!r} belongs to no queue")
        for key in line["canaries"]:
            yield Finding("S18", f"key {key!r} belongs to no queue, and was changed")
    for line in story.of_kind("emptied"):
        for key in line["keys"]:
            yield Finding("S17", f"{key!r} is left over in an empty queue")


def _repairs(story: Story) -> Iterator[Finding]:
    """Any damage that a repair finds is a violation."""
    for line in story.of_kind("repaired"):
        for mended in line["mended"]:
            yield Finding("S15", f"{line['q']}: repair mended {mended} after the run")
    for action in story.actions:
        if action.what == "repair" and action.answer:
            yield Finding("S15", f"{action.q}: repair mended {action.answer} {story.when(action.t0)}")
