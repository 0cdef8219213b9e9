"""The state machine catches every defect of the list, most of them in a handful of stories.

`searches.txt` has the search that last caught each defect. That search is tried first, which saves ten minutes. A line
that is out of date only costs time. To renew the file, delete it and run these tests with SEARCHES=write.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from groupmq.protocol import functions
from tests.model.mutant import Mutant, loader
from tests.model.mutants import MUTANTS
from tests.model.running import MANY, find_defect, of_kind
from tests.support.servers import Server

SEARCHES = Path(__file__).with_name("searches.txt")


@pytest.fixture(scope="module")
def one_server() -> Iterator[redis.Redis]:
    """One kind of server is enough: the defects are in the scripts."""
    server = Server.start("valkey")
    client = redis.Redis.from_url(server.unix_url)
    yield client
    client.close()
    server.stop()


@pytest.fixture(scope="module")
def likely() -> dict[str, int]:
    """The search that last caught each defect."""
    lines = SEARCHES.read_text("utf-8").splitlines() if SEARCHES.exists() else []
    return {defect: int(number) for number, _, defect in (line.partition(" ") for line in lines)}


# Longer than all searches together: a timeout would look like a story that ends differently, and so count as caught.
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.defect.replace(" ", "-") for mutant in MUTANTS])
def test_defect_is_caught(
    mutant: Mutant, one_server: redis.Redis, likely: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(functions, "load", loader(mutant))
    one_server.function_flush()  # removes the library of the previous mutant
    number = find_defect(of_kind(mutant.kind), one_server, MANY, likely.get(mutant.defect, 0))
    if os.environ.get("SEARCHES") == "write":
        with SEARCHES.open("a", encoding="utf-8") as file:
            file.write(f"{number} {mutant.defect}\n")
