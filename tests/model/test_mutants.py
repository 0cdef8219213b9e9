"""The state machine has teeth: it catches every defect of the list, most of them in a handful of stories."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis
from hypothesis.errors import Flaky

from groupmq.core.errors import ScriptError
from groupmq.protocol import functions
from tests.model.mutant import Mutant, loader
from tests.model.mutants import MUTANTS
from tests.model.running import MANY, of_kind, run
from tests.support.servers import Server


@pytest.fixture(scope="module")
def one_server() -> Iterator[redis.Redis]:
    """One kind of server is enough: the defects are in the scripts."""
    server = Server.start("valkey")
    client = redis.Redis.from_url(server.unix_url)
    yield client
    client.close()
    server.stop()


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.defect.replace(" ", "-") for mutant in MUTANTS])
def test_defect_is_caught(mutant: Mutant, one_server: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "load", loader(mutant))
    one_server.function_flush()  # the library of the mutant before
    # A defect that reaches from one story into the next makes the same story end differently.
    # The answer of another call cannot be read: that is a ValueError.
    with pytest.raises((AssertionError, ScriptError, Flaky, ValueError)):
        run(of_kind(mutant.kind), one_server, MANY, shrink=False, first=0)
