"""Answers about a server and its queues: plain, frozen, typed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal


@dataclass(frozen=True, slots=True, order=True)
class QueueInfo:
    """A queue on a server."""

    name: str
    prefix: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A named moment in the history of a queue: a deployment, an incident."""

    at: datetime
    label: str


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one test of `Queue.check`."""

    name: str
    status: Literal["ok", "warn", "fail"]
    detail: str
    """The result, in words."""
    hint: str = ""
    """Advice on what to do; empty if there is nothing to do."""


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """The server of a queue, as it describes itself. Neither its address nor any secret is in it."""

    kind: str
    """Redis or Valkey."""
    version: str
    role: str
    """primary or replica."""
    used_memory: int
    """Bytes."""
    maxmemory: int
    """Bytes; 0 = no limit."""
    eviction_policy: str
    """noeviction, or what the server deletes when memory is short."""
    persistence: str
    """append-only file, snapshots, none, or unknown where the server does not say."""
    uptime: float
    """Seconds."""
    connected_clients: int
