"""What a server reports about itself, and whether it is fit for a queue."""

from __future__ import annotations

import time
from typing import Any

from groupmq.client import libraries
from groupmq.client.connection.function_client import FunctionClient
from groupmq.client.connection.replies import decoded
from groupmq.core import findings
from groupmq.core.errors import ConnectionLost, GroupMQError, ServerRefused
from groupmq.core.findings import FAIL, OK, Info
from groupmq.core.server_views import Finding, ServerInfo

_LIBRARIES = "return cmsgpack ~= nil and cjson ~= nil and struct ~= nil and 1 or 0"


async def info(client: FunctionClient) -> Info:
    """Return the fields of INFO, those of all sections together."""
    return read_info(await client.command("INFO"))


def read_info(reply: Any) -> Info:
    """Parse a reply to INFO. It is text, or a mapping if the user's own client has parsed it."""
    if isinstance(reply, dict):
        return {decoded(name): decoded(value) for name, value in reply.items()}
    lines = decoded(reply).splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line and not line.startswith("#"))


async def config(client: FunctionClient, name: str) -> str | None:
    """One setting of the server; None if the server refuses CONFIG, as managed servers do."""
    try:
        reply = await client.command("CONFIG", "GET", name)
    except ConnectionLost:
        raise
    except GroupMQError:
        return None
    pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2], strict=False)
    return next((decoded(value) for _, value in pairs), None)


async def describe(client: FunctionClient) -> ServerInfo:
    """Describe the server, without its address."""
    found = await info(client)
    save = await config(client, "save")
    return ServerInfo(
        kind=findings.kind(found),
        version=findings.version_number(found),
        role="replica" if found.get("role") == "slave" else "primary",
        used_memory=int(found.get("used_memory", 0)),
        maxmemory=int(found.get("maxmemory", 0)),
        eviction_policy=found.get("maxmemory_policy", "unknown"),
        persistence=_persistence(found, save),
        uptime=float(found.get("uptime_in_seconds", 0)),
        connected_clients=int(found.get("connected_clients", 0)),
    )


async def ensure_writable(client: FunctionClient, key: str, patience: float) -> None:
    """Raise unless the server accepts writes. Only a write tells a primary from a replica, so this deletes `key`, which
    does not exist."""
    await client.command("UNLINK", key, patience=patience)


def _persistence(found: Info, save: str | None) -> str:
    if found.get("aof_enabled") == "1":
        return "append-only file"
    if save is None:
        return "unknown"
    return "snapshots" if save else "none"


async def examine(client: FunctionClient) -> list[Finding]:
    """Test whether the server is fit for a queue."""
    found = await info(client)
    save = await config(client, "save")
    functions = await libraries.finding(client)
    scripts = await _scripts(client, needed=functions.status != OK)
    before = time.time()
    seconds, micros = await client.command("TIME")
    after = time.time()
    whereabouts = client.whereabouts()
    return [
        findings.version(found),
        findings.role(found),
        *([Finding("topology", OK, whereabouts)] if whereabouts else ()),
        findings.persistence(found, save),
        findings.eviction(found),
        findings.memory(found),
        scripts,
        functions,
        findings.clock(int(seconds) + int(micros) / 1e6 - (before + after) / 2),
    ]


async def _scripts(client: FunctionClient, *, needed: bool) -> Finding:
    try:
        fits = await client.command("EVAL", _LIBRARIES, 0) == 1
    except ConnectionLost:
        raise
    except GroupMQError as error:
        if not needed and isinstance(error, ServerRefused) and error.kind == "NOPERM":
            return Finding("scripts", OK, "not allowed for this user, who calls functions instead")
        return Finding("scripts", FAIL, str(error), "groupmq needs Lua scripts; allow EVAL and EVALSHA")
    if not fits:
        return Finding("scripts", FAIL, "no cmsgpack or cjson", "groupmq needs the libraries of Redis and Valkey")
    return Finding("scripts", OK, "Lua runs")
