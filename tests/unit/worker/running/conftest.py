"""Tests of the executor run twice: with a task for each row, and with rows that share a task."""

from __future__ import annotations

import pytest

from groupmq.worker.fetching.prefetch import Prefetch

EXECUTORS = "test_executor"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.module.__name__.rsplit(".", 1)[-1].startswith(EXECUTORS):
        metafunc.fixturenames.append("shares_tasks")
        metafunc.parametrize("shares_tasks", [False, True], ids=["a task each", "shared task"], indirect=True)


@pytest.fixture
def shares_tasks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether rows share a task, as they do when handlers take no time."""
    shared: bool = request.param
    monkeypatch.setattr(Prefetch, "shares_tasks", property(lambda _: shared))
    return shared
