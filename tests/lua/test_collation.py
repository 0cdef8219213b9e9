"""Jobs are ordered by bytes in any locale of the server, although Lua compares strings by that locale."""

from __future__ import annotations

import random

import pytest

from tests.lua.engine import Engine
from tests.lua.test_search import found
from tests.support.servers import LOCALE

JOBS = 200


@pytest.fixture
def sorted_by_locale(engine: Engine) -> Engine:
    """A server to which `a` comes before `B`."""
    if engine.client.eval("return ARGV[1] < ARGV[2] and 1 or 0", 0, "B", "a") == 1:
        pytest.skip(f"the server compares by bytes: the locale {LOCALE} is not installed (Debian: locales-all)")
    return engine


def test_a_group_starts_in_order_of_priority_order_and_arrival(sorted_by_locale: Engine) -> None:
    engine, chance = sorted_by_locale, random.Random(1)
    expected = []
    for arrival in range(JOBS):
        job_id, priority, order = f"job-{arrival}", chance.randrange(3), chance.randrange(-50_000, 50_000)
        engine.add(job_id, priority=priority, order_ms=order)
        expected.append((priority, order, arrival, job_id))
    assert engine.run_all() == [job_id for *_, job_id in sorted(expected)]


def test_jobs_of_one_call_and_retried_ones_are_in_order_too(sorted_by_locale: Engine) -> None:
    engine = sorted_by_locale
    names = [f"job-{i}" for i in range(JOBS)]
    engine.add(*names)
    [first] = engine.take(1)
    engine.add("urgent")
    engine.retry_run(first, 0)
    assert engine.run_all() == [*names, "urgent"]


def test_a_page_goes_on_where_the_last_one_ended(sorted_by_locale: Engine) -> None:
    engine = sorted_by_locale
    groups = ["a", "B", "_c", "Ä", "ä", "z-1", "Z1", "-", "b"]
    for number, group in enumerate(groups):
        engine.add(f"{number}-first", f"{number}-second", group=group)
    listed = found(engine, state="waiting", limit=3)
    assert sorted(listed) == sorted(
        f"{number}-{which}" for number in range(len(groups)) for which in ("first", "second")
    )
