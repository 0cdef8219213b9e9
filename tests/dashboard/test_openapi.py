"""The description of the JSON API is checked against the API itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.core.result import Ok

from groupmq import Queue
from groupmq.dashboard.openapi import describe
from tests.dashboard.busy import Busy
from tests.dashboard.serving import serving
from tests.dashboard.visitor import Site
from tests.support.servers import Server
from tests.support.waiting import wait_until


class Live:
    """A busy queue and its dashboard in a separate thread, since schemathesis blocks the test's thread."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.url = ""
        self.ids: dict[str, str] = {}
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    def __enter__(self) -> Live:
        self._thread.start()
        wait_until(lambda: self.url or not self._thread.is_alive(), "the dashboard is served", 30)
        assert self.url
        return self

    def __exit__(self, *error: object) -> None:
        assert self._loop is not None
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(20)

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with Queue("orders", self._server.url, max_attempts=2, backoff=600) as queue:
            busy = Busy(queue)
            await busy.start()
            self.ids = busy.ids
            site = Site(redis=self._server.url)
            async with serving(site.dashboard) as url:
                self.url = url
                await self._stop.wait()
            await site.close()
            await busy.stop()


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    server = Server.start("valkey")
    try:
        with Live(server) as live:
            yield live
    finally:
        server.stop()


def fitting(case: Any, live: Live) -> Any:
    """Replace names in the path by those of existing objects; otherwise every answer would be 404."""
    known = {"queue": "orders", "job": live.ids["failed"], "group": "user:held"}
    for name in case.path_parameters:
        if name in known:
            case.path_parameters[name] = known[name]
    return case


@pytest.mark.parametrize("sensible", [True, False])
def test_the_api_keeps_to_its_description(live: Live, sensible: bool) -> None:
    schema = schemathesis.openapi.from_url(f"{live.url}/api/v1/openapi.json")
    tested = 0
    for found in schema.get_all_operations():
        assert isinstance(found, Ok), found
        operation = found.ok()

        @settings(
            max_examples=8,
            deadline=None,
            phases=[Phase.explicit, Phase.generate],
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        def check(case: Any) -> None:
            if sensible:
                fitting(case, live)
            answer = case.call(timeout=20)
            case.validate_response(
                answer,
                checks=[schemathesis.checks.not_a_server_error, _status_is_described, _document_is_described],
            )

        run(operation, check)
        tested += 1
    assert tested > 40


def run(operation: Any, check: Any) -> None:
    given(case=operation.as_strategy())(check)()


def _status_is_described(context: Any, response: Any, case: Any) -> None:
    described = case.operation.definition.raw["responses"]
    assert str(response.status_code) in described, f"{case.method} {case.path}: {response.status_code} {response.text}"


def _document_is_described(context: Any, response: Any, case: Any) -> None:
    assert response.headers["content-type"][0].startswith("application/json")
    case.operation.validate_response(response)


def test_every_document_is_described() -> None:
    described = describe("/base")
    schemas = described["components"]["schemas"]
    assert {"QueuesPage", "LanesPage", "JobDocument", "PlanPage", "OutcomePage", "ErrorPage"} <= set(schemas)
    assert described["servers"] == [{"url": "/base"}]
    assert described["openapi"] == "3.1.0"
