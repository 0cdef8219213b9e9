"""The server that holds the queues, in plain numbers: neither its address nor a secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupmq.dashboard.documents.record import record

if TYPE_CHECKING:
    from groupmq import ServerInfo


@record
class Server:
    kind: str
    version: str
    role: str
    used_memory: int
    maxmemory: int
    """0 = no limit."""
    eviction: str
    persistence: str
    uptime: float | None
    clients: int | None


def server(info: ServerInfo | None) -> Server | None:
    if info is None:
        return None
    return Server(
        kind=info.kind,
        version=info.version,
        role=info.role,
        used_memory=info.used_memory,
        maxmemory=info.maxmemory,
        eviction=info.eviction_policy,
        persistence=info.persistence,
        uptime=info.uptime,
        clients=info.connected_clients,
    )
