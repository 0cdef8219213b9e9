"""The dashboard behind a real server in the test's event loop, since an in-process client cannot read streams."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

import httpx
import uvicorn


@dataclass
class Said:
    """One message of a stream."""

    name: str
    data: Any
    id: str | None


@asynccontextmanager
async def serving(app: Any, lifespan: Literal["on", "off"] = "off") -> AsyncIterator[str]:
    """Serve the app inside the block. Yields its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan=lifespan, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    task = asyncio.ensure_future(server.serve(sockets=[listening]))
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
        listening.close()


@asynccontextmanager
async def listening_to(url: str, **headers: str) -> AsyncIterator[AsyncIterator[Said]]:
    """Open a stream inside the block. Yields its messages."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    async with httpx.AsyncClient(timeout=30) as client, client.stream("GET", url, headers=sent) as answer:
        assert answer.status_code == 200, answer.status_code
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield messages(answer)


async def messages(answer: httpx.Response) -> AsyncIterator[Said]:
    name, data, identity = "", "", None
    async for line in answer.aiter_lines():
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            data = value
        elif field == "id":
            identity = value
        elif not line and name:
            yield Said(name, json.loads(data), identity)
            name, data, identity = "", "", None


async def until(stream: AsyncIterator[Said], name: str, timeout: float = 15) -> Said:
    """Wait for the next message of this name."""
    async with asyncio.timeout(timeout):
        async for said in stream:
            if said.name == name:
                return said
    raise AssertionError(f"the stream ended without {name}")
