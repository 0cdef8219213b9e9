"""The dashboard mounts under any path, and its links stay there."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from groupmq import Queue
from groupmq.dashboard import create_app
from tests.dashboard.visitor import Site

PREFIX = "/admin/jobs"


def in_starlette(app: Any) -> Any:
    return Starlette(routes=[Route("/", lambda request: PlainTextResponse("host")), Mount(PREFIX, app)])


def keeping_the_path(app: Any) -> Any:
    """A plain ASGI host that follows the standard: `path` is the whole path and begins with `root_path`."""

    async def host(scope: Any, receive: Any, send: Any) -> None:
        await app(scope | {"root_path": PREFIX}, receive, send)

    return host


def cutting_the_path(app: Any) -> Any:
    """A plain ASGI host of the older kind: `path` does not include `root_path`."""

    async def host(scope: Any, receive: Any, send: Any) -> None:
        rest = scope["path"].removeprefix(PREFIX) or "/"
        await app(scope | {"root_path": PREFIX, "path": rest, "raw_path": rest.encode()}, receive, send)

    return host


@pytest.mark.parametrize("host", [in_starlette, keeping_the_path, cutting_the_path])
async def test_every_link_stays_below_the_mount_point(queue: Queue, url: str, host: Any) -> None:
    await queue.add({}, group_id="user:42")
    site = Site(redis=url, base=PREFIX, app=host)
    for name in ("queues", "queue", "jobs", "lanes", "failures", "settings"):
        html = await site.page(name, queue=queue.name)
        links = re.findall(r'(?:href|src|action|hx-get|hx-post)="(/[^"]*)"', html)
        assert links
        assert all(link.startswith(PREFIX + "/") for link in links), [x for x in links if not x.startswith(PREFIX)]
        for asset in {link for link in links if "/static/" in link}:
            assert (await site.get(asset)).status_code == 200, asset
    assert (await site.json("lanes", queue=queue.name))["lanes"][0]["group_id"] == "user:42"
    outcome = await site.act("pause", queue=queue.name)
    assert outcome["back"] == f"{PREFIX}/queues/{queue.name}"
    described = await site.get(f"{PREFIX}/api/v1/openapi.json")
    assert described.json()["servers"] == [{"url": PREFIX}]
    answer = await site.get(f"{PREFIX}/nothing")
    assert answer.status_code == 404
    cookies = [cookie.path for cookie in site.client.cookies.jar]
    assert set(cookies) == {PREFIX}
    await site.close()


async def test_a_login_below_a_mount_point(queue: Queue, url: str) -> None:
    await queue.add({})
    site = Site(redis=url, base=PREFIX, app=in_starlette, auth="a-token-of-some-length")
    answer = await site.get(site.at("lanes", queue=queue.name))
    assert answer.headers["location"].startswith(f"{PREFIX}/login?next=%2Fadmin%2Fjobs%2Fqueues")
    await site.close()


async def test_a_queue_of_the_host_app_is_used_and_not_closed(queue: Queue) -> None:
    await queue.add({"n": 1}, group_id="g")
    site = Site([queue])
    assert (await site.json("lanes", queue=queue.name))["total"] == 1
    await site.close()
    assert await queue.get_waiting_count() == 1


async def test_the_dashboard_starts_lazily_and_without_a_server() -> None:
    """A mounted app gets no lifespan, and a host app must start even while the queues' server is down."""
    app = create_app(redis="redis://127.0.0.1:1")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1") as client:
        assert (await client.get("/healthz")).text == "ok\n"
    await app.close()


async def test_alone_it_closes_with_its_server(queue: Queue, url: str) -> None:
    await queue.add({})
    site = Site(redis=url)
    await site.page("queue", queue=queue.name)
    incoming = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    sent: list[str] = []

    async def receive() -> Any:
        return incoming.pop(0)

    async def send(message: Any) -> None:
        sent.append(message["type"])

    await site.dashboard({"type": "lifespan"}, receive, send)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    await site.client.aclose()
