"""The verdict of a soak run finds planted growth, and nothing in a run that only fluctuates."""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from xml.etree import ElementTree

import pytest

from tests.soak import chart
from tests.soak.verdict import MB, Sample, judge

HOUR, EVERY = 3600, 5


def steady(seconds: int = HOUR) -> list[Sample]:
    """An hour in which everything fluctuates and nothing grows, after a minute in which everything fills up."""
    random, found = Random(3), []
    for n, t in enumerate(range(EVERY, seconds, EVERY)):
        filled = min(1.0, t / 60)

        def about(value: float, filled: float = filled) -> int:
            return round(value * filled * random.uniform(0.97, 1.03))

        process = {"rss": about(50 * MB), "fds": 30 + random.randrange(4), "tasks": about(35), "objects": about(55_000)}
        logs = min(30 * MB, t * 10_000)
        found.append(
            {
                "t": float(t),
                "server": {"memory": about(7 * MB) + logs, "rss": about(20 * MB) + logs, "logs": logs},
                "keys": {"all": about(400), "events": 6, "g:*": random.randrange(60)},
                "entries": {"jobs": about(3000), "unique": about(80), "events": 100 * n, "series": n // 12},
                "calls": {"n": 2000, "mean_us": about(200), "slowest_us": random.choice((500, 4000, 9000))},
                "processes": {name: dict(process) for name in ("producer", "stayer-1", f"visitor-{n // 10}")},
                "jobs": {"backlog": about(60), "completed": 200 * t, "mended": 0},
                "churn": {},
                "cores": 0.4,
            }
        )
    return found


def test_a_run_that_only_wavers_is_flat() -> None:
    verdict = judge(steady())
    assert verdict.is_flat, [str(row) for row in verdict.grew]


def _memory(s: Sample) -> None:
    s["server"]["memory"] += s["t"] * 200 * 8


def _server_rss(s: Sample) -> None:
    s["server"]["rss"] += s["t"] * 200 * 20


def _ids(s: Sample) -> None:
    s["entries"]["unique"] += s["t"] / 10


def _new_kind(s: Sample) -> None:
    if s["t"] > HOUR / 2:
        s["entries"]["forgotten"] = 150


def _group_keys(s: Sample) -> None:
    s["keys"]["g:*"] += s["t"] / 30


def _rss(s: Sample) -> None:
    s["processes"]["stayer-1"]["rss"] += s["t"] * 5 * 1024


def _descriptors(s: Sample) -> None:
    s["processes"]["stayer-1"]["fds"] += int(s["t"] / 240)


def _tasks(s: Sample) -> None:
    s["processes"]["producer"]["tasks"] += int(s["t"] / 60)


def _objects(s: Sample) -> None:
    s["processes"]["producer"]["objects"] += s["t"] * 4


def _backlog(s: Sample) -> None:
    s["jobs"]["backlog"] += s["t"] / 5


def _cost(s: Sample) -> None:
    s["calls"]["mean_us"] *= 1 + s["t"] / HOUR


def _slowest(s: Sample) -> None:
    s["calls"]["slowest_us"] *= 1 + 5 * s["t"] / HOUR


@pytest.mark.parametrize(
    ("plant", "title"),
    [
        (_memory, "server memory without logs"),
        (_server_rss, "server rss without logs"),
        (_ids, "entries of unique"),
        (_new_kind, "entries of forgotten"),
        (_group_keys, "keys of g:*"),
        (_rss, "rss of stayer-1"),
        (_descriptors, "descriptors of stayer-1"),
        (_tasks, "tasks of producer"),
        (_objects, "objects of producer"),
        (_backlog, "backlog"),
        (_cost, "mean call"),
        (_slowest, "slowest call"),
    ],
)
def test_growth_is_found_and_named(plant: Callable[[Sample], None], title: str) -> None:
    samples = copy.deepcopy(steady())
    for sample in samples:
        plant(sample)
    assert [row.title for row in judge(samples).grew] == [title]


def test_what_is_bounded_may_fill_up_at_first() -> None:
    samples = steady()
    for sample in samples:
        sample["entries"]["jobs"] = min(3000, sample["t"] * 30)
    assert judge(samples).is_flat


def test_a_log_above_its_bound_is_found() -> None:
    samples = steady()
    samples[-1]["server"]["logs"] = 60 * MB
    assert judge(samples).other == ["the event logs have 62,914,560 bytes, at most 44,040,192 are expected"]


def test_mended_damage_and_leftovers_are_wrong() -> None:
    samples = steady()
    samples[-1]["jobs"]["mended"] = 2
    assert judge(samples, left=["3 jobs are left"]).other == ["3 jobs are left", "repair mended 2 defects"]


def test_a_run_without_a_completed_job_is_wrong() -> None:
    samples = steady()
    for sample in samples:
        sample["jobs"]["completed"] = 0
    assert judge(samples).other == ["no job was completed"]


def test_a_short_run_has_no_verdict() -> None:
    assert judge(steady(30)).other == ["too short: 4 samples after the warm-up, 8 are needed"]
    assert judge([]).other == ["too short: 0 samples after the warm-up, 8 are needed"]


def test_the_chart_is_a_picture_that_says_the_verdict() -> None:
    samples = steady()
    for sample in samples:
        _ids(sample)
    picture = chart.render(samples, judge(samples), "an hour <planted>")
    assert "entries of unique" in picture
    root = ElementTree.fromstring(picture)
    assert len(root.findall("{*}path")) > 20
