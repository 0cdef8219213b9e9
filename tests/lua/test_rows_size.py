"""Rows of large jobs: prefetched jobs must not fill the memory of the server or of the worker."""

from __future__ import annotations

import pytest

from tests.lua.engine import Engine

pytestmark = pytest.mark.usefixtures("nothing_to_mend")

ROOM = 1024 * 1024
LARGE = "x" * 100_000


def test_a_row_ends_where_its_jobs_become_too_large_in_all(engine: Engine) -> None:
    names = [f"{n:02}" for n in range(100)]
    for name in names:
        engine.add(name, data=LARGE)
    answer = engine.advance(take=1, row=100)
    assert [job.id for job in answer.jobs] == names[: len(answer.jobs)]
    assert len(answer.rows) == 1
    assert ROOM - len(LARGE) < sum(len(job.record) for job in answer.jobs) < ROOM + 2 * len(LARGE)
    engine.complete(*answer.jobs)
    assert [job.id for job in engine.take()] == names[len(answer.jobs) : len(answer.jobs) + 1]


def test_heads_with_their_data_in_their_records_are_all_taken(engine: Engine) -> None:
    groups = [f"g{n:03}" for n in range(150)]
    for group in groups:
        engine.add(f"{group}-1", f"{group}-2", data=LARGE[:8_000], group=group)
    answer = engine.advance(take=150, row=2)
    assert [job.id for job in answer.jobs if job.id.endswith("-1")] == [f"{group}-1" for group in groups]
    assert 0 < sum(length - 1 for length in answer.rows) <= ROOM // (2 * 8_000)
