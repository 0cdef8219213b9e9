"""The examples of docs/dashboard.md, run as they stand there: the dashboard below a path of each framework."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from groupmq import Queue
from groupmq.cli.dashboard import make_server
from groupmq.dashboard import create_app
from groupmq.dashboard.live import reader as readers
from groupmq.dashboard.mounting import placed
from tests.conftest import MakeQueue
from tests.dashboard import hosts
from tests.dashboard.serving import messages, serving, until
from tests.support.waiting import eventually

PREFIX = "/queues"
TEXT = {"Accept": "text/html"}


@pytest.fixture(params=sorted(hosts.HOSTS))
def host(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, url: str, monkeypatch: pytest.MonkeyPatch
) -> hosts.Host:
    """An example of the page, with the server's URL in the environment, where the example reads it."""
    monkeypatch.setenv("GROUPMQ_URL", url)
    monkeypatch.setenv("SECRET_KEY", "a secret key of a test")
    return hosts.load(request.param, tmp_path_factory.mktemp("host"))


@pytest.fixture
async def orders(make_queue: MakeQueue) -> Queue:
    queue = make_queue("orders")
    await make_queue("emails").get_job_counts()
    await queue.add({"n": 1}, group_id="user/42")
    return queue


@asynccontextmanager
async def visiting(app: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A client in this process, without a lifespan for the host."""
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client


def test_the_page_has_an_example_for_each_framework() -> None:
    assert set(hosts.examples()) == set(hosts.HOSTS)


async def test_pages_links_and_assets_are_below_the_mount_point(host: hosts.Host, orders: Queue) -> None:
    """The host has no lifespan, so the first request opens everything."""
    async with visiting(host.app) as client:
        refused = await client.get(f"{PREFIX}/", headers=TEXT)
        assert refused.status_code == 403, "the host app's own check must refuse this"
        await host.enter(client)
        seen: set[str] = set()
        for page in ("/", "/queues/orders", "/queues/orders/lanes", "/queues/orders/jobs", "/queues/orders/settings"):
            answer = await client.get(PREFIX + page, headers=TEXT)
            assert answer.status_code == 200, (page, answer.text)
            links = re.findall(r'(?:href|src|action|hx-get|hx-post|sse-connect|data-[a-z]+)="(/[^"]*)"', answer.text)
            outside = [link for link in links if not link.startswith(f"{PREFIX}/")]
            assert links
            assert not outside, (page, outside)
            seen |= {link.replace("&amp;", "&") for link in links}
        assert f"{PREFIX}/queues/orders/lanes" in seen
        assert any("/groups/~" in link for link in seen), "no link to the group with a slash in its name"
        for link in sorted(seen):
            if "/stream" not in link and "/logout" not in link:
                answer = await client.get(link, headers=TEXT)
                assert answer.status_code == 200, (link, answer.text)
    await host.dashboard.close()


async def test_the_mount_point_itself_is_the_list_of_queues(host: hosts.Host, orders: Queue) -> None:
    async with visiting(host.app) as client:
        await host.enter(client)
        answer = await client.get(PREFIX, headers=TEXT, follow_redirects=True)
        assert answer.status_code == 200
        assert f'href="{PREFIX}/queues/orders"' in answer.text
        assert (await client.get(f"{PREFIX}/api/v1/queues")).json()["total"] == 2
        assert (await client.get(f"{PREFIX}/nothing", headers=TEXT)).status_code == 404
    await host.dashboard.close()


async def test_a_form_is_accepted_from_its_own_page_only(host: hosts.Host, orders: Queue) -> None:
    at = f"{PREFIX}/queues/orders/actions/pause"
    async with visiting(host.app) as client:
        await host.enter(client)
        page = await client.get(at, headers=TEXT)
        token = re.search(r'name="csrf" value="([^"]+)"', page.text)
        assert token is not None, page.text
        assert f'action="{at}"' in page.text
        kind = TEXT | {"Content-Type": "application/x-www-form-urlencoded"}

        async def post(body: dict[str, str], **more: str) -> httpx.Response:
            headers = kind | {name.replace("_", "-"): value for name, value in more.items()}
            return await client.post(at, content=urlencode(body), headers=headers)

        assert (await post({"csrf": token[1]}, origin="http://evil.example")).status_code == 403
        assert (await post({"csrf": token[1]}, sec_fetch_site="cross-site")).status_code == 403
        assert (await post({"csrf": "made-up"}, origin="http://127.0.0.1")).status_code == 403
        assert not await orders.is_paused()
        done = await post({"csrf": token[1]}, origin="http://127.0.0.1", sec_fetch_site="same-origin")
        assert done.status_code == 303, done.text
        assert done.headers["location"] == f"{PREFIX}/queues/orders"
        assert await orders.is_paused()
        ours = {cookie.path for cookie in client.cookies.jar if cookie.name.startswith("groupmq")}
        assert ours == {PREFIX}
        assert "The queue is paused." in (await client.get(done.headers["location"], headers=TEXT)).text
    await host.dashboard.close()


async def test_streams_deliver_and_a_stop_leaves_nothing(
    host: hosts.Host, orders: Queue, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host runs behind a real server with a lifespan, and a tab is open until the end."""
    for name in ("SNAPSHOT_EVERY", "CHANGES_EVERY", "ROWS_EVERY"):
        monkeypatch.setattr(readers, name, 0.05)
    tasks, connections = asyncio.all_tasks(), connected(client)
    async with serving(host.app, lifespan="on") as at, httpx.AsyncClient(base_url=at, timeout=30) as visitor:
        await host.enter(visitor)
        async with visitor.stream("GET", f"{PREFIX}/queues/orders/stream") as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            stream = messages(answer)
            await until(stream, "snapshot")
            await orders.add({"n": 2}, group_id="user/42")
            while (await until(stream, "snapshot")).data["counts"]["waiting"] != 2:
                pass
            assert connected(client) > connections
    await eventually(lambda: asyncio.all_tasks() <= tasks, "the host has stopped: its tasks have ended")
    # The add may have opened connections of the test's queue. Close them, so that only those of the dashboard count.
    await orders.close()
    await eventually(lambda: connected(client) <= connections, "the dashboard's connections are closed")


def connected(client: Any) -> set[str]:
    """Addresses of the clients of the server."""
    return {one["addr"] for one in client.client_list()}


@pytest.mark.parametrize(
    ("root", "path", "raw", "expected"),
    [
        # The host follows the ASGI standard.
        ("/admin", "/admin/queues/orders", "/admin/queues/orders", ("/admin", "/admin/queues/orders")),
        ("/queues", "/queues/queues/orders", "/queues/queues/orders", ("/queues", "/queues/queues/orders")),
        ("/queues", "/queues/queues/queues", "/queues/queues/queues", ("/queues", "/queues/queues/queues")),
        ("/queues", "/queues", "/queues", ("/queues", "/queues/")),
        ("", "/queues/orders", "/queues/orders", ("", "/queues/orders")),
        ("", "/", "/", ("", "/")),
        # The host has cut the mount point off the path.
        ("/admin", "/queues/orders", "/admin/queues/orders", ("/admin", "/admin/queues/orders")),
        ("/queues", "/queues/orders", "/queues/queues/orders", ("/queues", "/queues/queues/orders")),
        ("/queues", "/", "/queues/", ("/queues", "/queues/")),
        # It does so without setting root_path, like Litestar.
        ("", "/queues/orders/", "/queues/queues/orders", ("/queues", "/queues/queues/orders")),
        ("", "/", "/queues", ("/queues", "/queues/")),
        ("", "/queues/a b/", "/a%20b/queues/a%20b", ("", "/queues/a b")),
        # A mount point that would make links lead to another site is ignored.
        ("", "/login/", "//evil.example//login", ("", "/login")),
        ("", "/login/", "/../login", ("", "/login")),
        ("", "/login/", "/%5Cevil.example/login", ("", "/login")),
    ],
)
def test_hosts_say_in_different_ways_where_the_mount_point_is(
    root: str, path: str, raw: str, expected: tuple[str, str]
) -> None:
    found = placed({"type": "http", "root_path": root, "path": path, "raw_path": raw.encode()})
    assert (found["root_path"], found["path"]) == expected


@pytest.mark.parametrize("root", ["/queues", "/admin"])
@pytest.mark.parametrize("kept", [True, False])
async def test_a_proxy_may_pass_the_prefix_on_or_cut_it_off(orders: Queue, url: str, root: str, kept: bool) -> None:
    """`groupmq dashboard --root-path` works behind a real server with either kind of proxy."""
    app = create_app(redis=url)
    served = make_server(app, root_path=root).config.app
    async with serving(served) as at, httpx.AsyncClient(base_url=at + (root if kept else "")) as client:
        for path in ("/", "/queues/orders/lanes", "/login", "/static/app.css", "/api/v1/queues/orders"):
            answer = await client.get(path, follow_redirects=False)
            assert answer.status_code in (200, 303), (path, answer.text)
        page = await client.get("/queues/orders", headers=TEXT)
        assert f'href="{root}/queues/orders/lanes"' in page.text
    await app.close()
