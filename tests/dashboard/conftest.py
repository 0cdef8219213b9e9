"""A dashboard over the test's server, and a visitor without a browser."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from groupmq import Queue
from tests.conftest import MakeQueue
from tests.dashboard.busy import Busy
from tests.dashboard.visitor import Site
from tests.support.servers import Server

MakeSite = Callable[..., Site]


@pytest.fixture(scope="session")
def session_server() -> Iterator[Server]:
    """One kind of server: the dashboard only sees the public API, which is tested with both."""
    server = Server.start("valkey")
    yield server
    server.stop()


@pytest.fixture
async def make_site(url: str) -> AsyncIterator[MakeSite]:
    """Makes dashboards over the test's server; they are closed at the end."""
    made: list[Site] = []

    def make(*queues: str | Queue, **options: Any) -> Site:
        site = Site(list(queues) or None, redis=options.pop("redis", url), **options)
        made.append(site)
        return site

    yield make
    for site in made:
        await site.close()


@pytest.fixture
async def site(make_site: MakeSite) -> Site:
    """A dashboard of all queues of the server, with everything allowed."""
    return make_site()


@pytest.fixture
async def busy(make_queue: MakeQueue) -> AsyncIterator[Busy]:
    """A queue `orders` with jobs in every state, a held group, a paused one, a worker and a repeat."""
    busy = Busy(make_queue("orders", max_attempts=2, backoff=600))
    await busy.start()
    yield busy
    await busy.stop()
