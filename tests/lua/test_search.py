"""Searching: the meaning of filters, and pages that continue where the last one ended."""

from __future__ import annotations

from typing import Any

import pytest

from groupmq import ConfigurationError, Job, JobFilter
from groupmq.client.answers.cursors import packed
from groupmq.core.pages import JobPage
from tests.lua.engine import SECOND, Engine
from tests.lua.test_browsing import fail_all, group_jobs


def search(engine: Engine, wanted: JobFilter | None = None, state: str = "failed", **how: Any) -> JobPage[Job]:
    given = {"limit": 50, "cursor": None, "scan": 2000, **how}
    return engine.run_now(engine.operations.search(wanted, state=state, **given))


def found(engine: Engine, wanted: JobFilter | None = None, state: str = "failed", **how: Any) -> list[str]:
    """All pages of a search."""
    ids: list[str] = []
    cursor: str | None = None
    while True:
        page = search(engine, wanted, state, cursor=cursor, **how)
        ids += [job.id for job in page.jobs]
        cursor = page.cursor
        if cursor is None:
            return ids


def test_each_part_of_a_filter_says_which_jobs_are_meant(engine: Engine) -> None:
    engine.add("a", group="g1", data={"to": "Ann"}, max_attempts=1)
    fail_all(engine, "CardDeclined: 12", error="shop.errors.CardDeclined")
    engine.add("b", group="g2", data={"to": "Bob", "q": 'say "hi"\n'}, max_attempts=1)
    engine.pass_time(600 * SECOND)
    fail_all(engine, "ValueError: ANNe", error="ValueError")
    engine.add("c", data={}, max_attempts=1)
    engine.take_one(worker="w2")
    engine.stall()
    for wanted, expected in (
        (JobFilter(), ["c", "b", "a"]),
        (JobFilter(error="CardDeclined"), ["a"]),
        (JobFilter(error="shop.errors.CardDeclined"), ["a"]),
        (JobFilter(error="shop"), ["a"]),
        (JobFilter(error="Declined"), []),
        (JobFilter(error="errors"), []),
        (JobFilter(error="ValueError"), ["b"]),
        (JobFilter(group_id="g2"), ["b"]),
        (JobFilter(group_id="nobody"), []),
        (JobFilter(job_id="a"), ["a"]),
        (JobFilter(job_id="a", group_id="g2"), []),
        (JobFilter(job_id="nobody"), []),
        (JobFilter(worker="w2"), ["c"]),
        (JobFilter(text="ann"), ["b", "a"]),
        (JobFilter(text='Say "HI"'), ["b"]),
        (JobFilter(text="\n"), ["b"]),
        (JobFilter(text="stalled"), ["c"]),
        (JobFilter(older=300), ["a"]),
        (JobFilter(newer=300), ["c", "b"]),
        (JobFilter(older=20, newer=300), ["b"]),
        (JobFilter(state="failed", error="ValueError", text="bob"), ["b"]),
        (JobFilter(state="waiting"), []),
    ):
        assert found(engine, wanted) == expected, f"{wanted}"
        assert found(engine, wanted, limit=1) == expected, f"{wanted}, one job per page"
        assert found(engine, wanted, scan=1) == expected, f"{wanted}, one job read per page"


@pytest.mark.parametrize("state", ["waiting", "delayed", "active", "completed", "failed"])
def test_every_job_of_a_state_is_found_once_in_pages_of_any_size(engine: Engine, state: str) -> None:
    delay = 60 if state == "delayed" else None
    for n in range(40):
        engine.add(f"j{n}", group=None if n % 4 == 0 else f"g{n}", delay=delay)
    if state in ("active", "completed", "failed"):
        jobs = engine.take(40)
        if state == "completed":
            engine.complete(*jobs)
        for job in jobs if state == "failed" else ():
            engine.fail_run(job)
    expected = sorted(f"j{n}" for n in range(40))
    for limit in (1, 7, 39, 40, 100):
        assert sorted(found(engine, None, state, limit=limit)) == expected
        assert sorted(found(engine, JobFilter(text="null"), state, limit=limit)) == expected


def test_finished_jobs_come_newest_first(engine: Engine) -> None:
    engine.add("a", "b", "c", max_attempts=1)
    fail_all(engine, "1", "2", "3")
    assert found(engine, limit=2) == ["c", "b", "a"]


def test_a_page_goes_on_where_the_last_one_ended_though_its_last_job_is_gone(engine: Engine) -> None:
    engine.add(*(f"j{n}" for n in range(9)), max_attempts=1)
    fail_all(engine, *"123456789")
    page = search(engine, limit=3)
    assert [job.id for job in page.jobs] == ["j8", "j7", "j6"]
    engine.remove("j6", "j8", "j4")
    rest = search(engine, cursor=page.cursor, limit=3)
    assert [job.id for job in rest.jobs] == ["j5", "j3", "j2"]


def test_a_page_of_waiting_jobs_goes_on_though_its_last_group_is_gone(engine: Engine) -> None:
    for n in range(30):
        engine.add(f"j{n:02}", group=f"g{n:02}")
    page = search(engine, state="waiting", limit=10)
    seen = [job.id for job in page.jobs]
    engine.remove(*seen[5:])
    rest = found(engine, None, "waiting", limit=10)
    after = search(engine, state="waiting", limit=50, cursor=page.cursor)
    assert sorted([job.id for job in after.jobs] + seen[:5]) == sorted(rest)


def test_delayed_jobs_of_one_millisecond_are_all_found(engine: Engine) -> None:
    engine.add(*(f"j{n:03}" for n in range(25)), delay=60)
    assert found(engine, None, "delayed", limit=4) == [f"j{n:03}" for n in range(25)]


def test_a_search_looks_at_no_more_jobs_than_it_may(engine: Engine) -> None:
    engine.add(*(f"j{n}" for n in range(50)), max_attempts=1)
    fail_all(engine, *(str(n) for n in range(50)))
    page = search(engine, JobFilter(text="nowhere"), scan=20)
    assert (page.jobs, page.scanned, page.total) == ([], 20, 50)
    assert page.cursor is not None
    page = search(engine, JobFilter(text="nowhere"), scan=100, cursor=page.cursor)
    assert (page.scanned, page.cursor) == (30, None)


def test_a_search_of_one_group_looks_at_its_waiting_jobs_alone(engine: Engine) -> None:
    engine.add("a", "b", "c")
    engine.add(*(f"x{n}" for n in range(50)), group="other")
    page = search(engine, JobFilter(group_id="g"), state="waiting")
    assert ([job.id for job in page.jobs], page.scanned, page.total) == (["a", "b", "c"], 3, 3)
    assert found(engine, JobFilter(group_id="g"), "waiting", limit=2) == ["a", "b", "c"]


@pytest.mark.parametrize("cursor", ["", "x", "!!", "k6ZmYWls", 7, b"x", "A" * 30_000])
def test_a_cursor_that_is_not_ours_is_refused(engine: Engine, cursor: Any) -> None:
    for state in ("failed", "waiting"):
        with pytest.raises(ConfigurationError, match=r"cursor: expected the cursor of an earlier page"):
            search(engine, state=state, cursor=cursor)
    with pytest.raises(ConfigurationError, match=r"cursor: expected"):
        engine.run_now(engine.operations.get_group_jobs("g", 5, cursor))


@pytest.mark.parametrize(
    "parts",
    [
        ("failed", "abc", "j"),
        ("failed", "(1", "j"),
        ("failed", "1" * 30, "j"),
        ("failed", "inf", "j"),
        ("failed", 1, "j"),
        ("failed", "1"),
        ("waiting", "-1", "g", b"x"),
        ("waiting", "x", "g", b"x"),
        ("waiting", "0", "g", "x"),
        ("group jobs", "nothing", ""),
        ("group jobs", "active", "-1"),
        ("group jobs", "active", "9" * 5000),
        ("group jobs", "waiting", "abc"),
        ("group jobs", "delayed", "abc"),
    ],
)
def test_a_forged_cursor_is_refused_before_the_server_sees_it(engine: Engine, parts: tuple[Any, ...]) -> None:
    cursor = packed(*parts)
    engine.add("a")
    engine.add("later", delay=60)
    steps: Any
    if parts[0] == "group jobs":
        steps = engine.operations.get_group_jobs("g", 5, cursor)
    else:
        steps = engine.operations.search(None, state=parts[0], cursor=cursor)
    with pytest.raises(ConfigurationError, match="cursor"):
        engine.run_now(steps)


def test_a_cursor_beyond_the_end_finds_nothing(engine: Engine) -> None:
    engine.add("a", max_attempts=1)
    fail_all(engine, "boom")
    assert search(engine, cursor=packed("failed", "1", "j")).jobs == []
    assert group_jobs(engine) == []
    page = engine.run_now(engine.operations.get_group_jobs("g", 5, packed("group jobs", "active", "99")))
    assert (page.jobs, page.cursor) == ([], None)


def test_a_cursor_of_another_state_is_refused(engine: Engine) -> None:
    engine.add("a", "b")
    cursor = search(engine, state="waiting", limit=1).cursor
    with pytest.raises(ConfigurationError, match="cursor"):
        search(engine, state="delayed", cursor=cursor)


def test_bad_arguments_of_a_search_are_named(engine: Engine) -> None:
    for how, named in (
        ({"limit": 0}, "limit"),
        ({"scan": 0}, "scan"),
        ({"wanted": "x"}, "filter: expected a JobFilter or None"),
        ({"state": "done"}, "state"),
    ):
        with pytest.raises(ConfigurationError, match=named):
            search(engine, **how)
