"""A visitor of the dashboard without a browser: gets pages and JSON, fills in forms."""

from __future__ import annotations

import base64
import re
from typing import Any
from urllib.parse import urlencode

import httpx

from groupmq.dashboard import create_app, paths

HOST = "http://127.0.0.1"


def basic(name: str, password: str) -> str:
    """The header with which a browser answers a request for a password."""
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


class Site:
    """A dashboard and a client that talks to it in this process."""

    def __init__(self, queues: Any = None, *, base: str = "", app: Any = None, **options: Any) -> None:
        self.dashboard = create_app(queues, **options)
        self.base = base
        transport = httpx.ASGITransport(app=app(self.dashboard) if app else self.dashboard)
        self.client = httpx.AsyncClient(transport=transport, base_url=HOST, follow_redirects=False)

    def at(self, name: str, **params: object) -> str:
        return paths.build(self.base, name, params)

    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self.client.get(path, headers={"Accept": "text/html"} | _dashed(headers))

    async def page(self, name: str, **params: object) -> str:
        """The HTML of a page, which must be there."""
        answer = await self.get(self.at(name, **params))
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        return answer.text

    async def json(self, name: str, status: int = 200, **params: object) -> Any:
        """The document of a page, as JSON."""
        answer = await self.client.get(self.at(name, **params), headers={"Accept": "application/json"})
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/json"
        return answer.json()

    async def plan(self, action: str, status: int = 200, queue: str = "orders", **fields: Any) -> Any:
        return await self.json("action", status, queue=queue, action=action, **fields)

    async def act(self, action: str, status: int = 200, queue: str = "orders", **fields: Any) -> Any:
        """Perform an action as a script does, through the JSON API."""
        path = paths.API + self.at("action", queue=queue, action=action).removeprefix(self.base)
        answer = await self.client.post(self.base + path, json=fields)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def token(self, page: str | None = None, queue: str = "orders") -> str:
        """The token of a form on a page; the cookie that belongs to it stays with the client."""
        answer = await self.get(page or self.at("action", queue=queue, action="add"))
        found = re.search(r'name="csrf" value="([^"]+)"', answer.text)
        assert found is not None, answer.text
        return found[1]

    async def submit(self, action: str, queue: str = "orders", **fields: str) -> httpx.Response:
        """Perform an action as a browser does, with a form."""
        fields.setdefault("csrf", await self.token(queue=queue))
        return await self.post(self.at("action", queue=queue, action=action), fields)

    async def post(self, path: str, fields: dict[str, str], **headers: str) -> httpx.Response:
        kind = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "text/html"}
        return await self.client.post(path, content=urlencode(fields), headers=kind | _dashed(headers))

    async def close(self) -> None:
        await self.client.aclose()
        await self.dashboard.close()


def _dashed(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}
