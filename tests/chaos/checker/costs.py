"""L6 and L7: the cost of idle workers and of outages, and that no call blocks the server for long."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.chaos.checker.finding import Finding, Notes
from tests.chaos.checker.story import Story

SLOWEST = 5.0
"""Milliseconds of the server's time that one call may take."""
EXTRA = 8
"""Reads and calls that each idle worker may make beyond one for each period: at the edges of the measured time, and for
duties."""
TRIES = 100
"""Connections that one process may try to open in a second of an outage: each of its parts tries, with pauses. The
scheduler and the recovery process have such parts for each of eleven queues."""
OUTAGE, PROCESSES, SPREAD = 1.5, 3, 0.05
"""After an outage of at least OUTAGE seconds that at least PROCESSES processes noticed, their reconnections must be
spread over at least SPREAD seconds."""


def check(story: Story, notes: Notes) -> Iterator[Finding]:
    yield from idle(story)
    yield from reconnecting(story)
    yield from short_calls(story, notes)


def idle(story: Story) -> Iterator[Finding]:
    """L6: an idle worker makes one blocking read and one call for each blocking timeout, and its heartbeats."""
    for line in story.of_kind("idle"):
        periods = line["seconds"] / line["block"] + line["seconds"] / line["beat"] + EXTRA
        most = line["workers"] * periods
        for what, n in line["calls"].items():
            if n > most:
                told = f"{line['workers']} idle workers made {n} {what} calls in {line['seconds']:.1f} s"
                yield Finding("L6", f"{told}, at most {most:.0f} are needed")


def reconnecting(story: Story) -> Iterator[Finding]:
    """L6: while the server is away processes retry with pauses, and they do not all reconnect at once."""
    tries: dict[str, list[float]] = defaultdict(list)
    for line in story.of_kind("try"):
        tries[line["actor"]].append(line["t"])
    for fault in story.faults:
        if fault.kind == "cut":
            yield from _too_often(story, fault.target, tries[fault.target], fault.t0, fault.t1)
        elif fault.kind == "restart":
            for actor, times in tries.items():
                yield from _too_often(story, actor, times, fault.t0, fault.t1)
            firsts = [min((t for t in times if t > fault.t1), default=None) for times in tries.values()]
            back = sorted(t for t in firsts if t is not None and t < fault.t1 + 25)
            if fault.t1 - fault.t0 >= OUTAGE and len(back) >= PROCESSES and back[-1] - back[0] < SPREAD:
                spread = f"within {1000 * (back[-1] - back[0]):.0f} ms"
                yield Finding("L6", f"{len(back)} processes came back {spread} of each other, {story.when(fault.t1)}")


def _too_often(story: Story, actor: str, times: list[float], since: float, until: float) -> Iterator[Finding]:
    if actor.startswith("producer"):
        return  # dozens of concurrent adds, each of which retries on its own, with its own pauses
    n, most = sum(since <= t <= until for t in times), TRIES * (until - since + 1)
    if n > most:
        told = f"{actor} tried to connect {n} times in an outage of {until - since:.1f} s, {story.when(since)}"
        yield Finding("L6", f"{told}; at most {most:.0f} are expected")


def short_calls(story: Story, notes: Notes) -> Iterator[Finding]:
    """L7: no call takes the server longer than 5 ms, not counting the time for which it waited for a processor.

    The server's slow log measures wall time. The time that the server waited for a processor in that second, and that
    a host took from its virtual machine, is subtracted, so this proves little on a busy machine, and everything on an
    idle one.
    """
    stops = [(fault.t0, fault.t1) for fault in story.faults if fault.kind == "stop"]
    for line in story.of_kind("served"):
        notes.slow_calls += len(line["slow"])
        if any(since <= line["t"] and until >= line["since"] for since, until in stops):
            continue  # it was stopped in the middle of a call
        for name, micros in line["slow"]:
            if micros / 1000 - line["waited"] * 1000 > SLOWEST:
                waited = f"it waited {line['waited'] * 1000:.1f} ms for a processor"
                yield Finding("L7", f"{name} took the server {micros / 1000:.1f} ms, {story.when(line['t'])}; {waited}")
