"""An engine per test; after the test its queue must be consistent at the engine's own time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.lua.engine import Engine

MakeEngine = Callable[..., Engine]


@pytest.fixture
def made() -> list[Engine]:
    """The engines of a test."""
    return []


@pytest.fixture
def by() -> Any:
    """How functions are called: from the library, or with `make test-scripts` each as a separate script."""
    return os.environ.get("GROUPMQ_CALLS", "function")


@pytest.fixture
def make_engine(url: str, by: Any, made: list[Engine]) -> Iterator[MakeEngine]:
    def make(**options: Any) -> Engine:
        made.append(Engine(url, **options))
        made[-1].connection.session.calls_by = by
        return made[-1]

    yield make
    for engine in made:
        found = engine.violations()
        engine.close()
        assert not found, "broken invariants:\n  " + "\n  ".join(found)


@pytest.fixture
def engine(make_engine: MakeEngine) -> Engine:
    return make_engine()


@pytest.fixture
def nothing_to_mend(make_engine: MakeEngine, made: list[Engine]) -> Iterator[None]:
    """Check after the test that a repair finds nothing to mend."""
    yield
    assert [engine.damage() for engine in made] == [{}] * len(made)
