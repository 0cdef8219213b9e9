# Generated from src/groupmq/client/registry.py by `make sync`; do not edit.
"""The list of the queues of a server: one set per prefix, `<prefix>:queues`, with the names of its queues.

Opening a queue enters it (`FunctionClient.enter`). It is struck out when it is obliterated, or when the list is read
and the queue no longer exists. The key is not in the hash tag of a queue, so in a cluster it may live on another node:
it is read and written by separate commands to the owner of its slot, never by a function. No queue depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence

from groupmq.client.connection.replies import decoded
from groupmq.core.errors import ConfigurationError, GroupMQError, ServerRefused
from groupmq.core.queue_options import queue_name
from groupmq.protocol.keys import Keys, registry_key
from groupmq.sync.connection.function_client import FunctionClient

AT_ONCE = 100
"""Queues that one command checks for existence."""
PAGE = 500
"""Names read in one command."""


def strike_own(client: FunctionClient) -> None:
    """Take the queue of a client out of the list, unless it was created again. If that fails, `Queue.list` does it."""
    entry = client.session.entry
    entry.written()
    try:
        strike(client, entry.prefix, entry.name)
    except GroupMQError as error:
        entry.not_removed(error)


def strike(client: FunctionClient, prefix: str, name: str, patience: float | None = None) -> bool:
    """Take a queue that is gone out of the list; False if it exists again.

    A queue is stored before it is entered. So if SREM has removed the entry of a queue that was created again, EXISTS
    finds that queue, and it is entered again.
    """
    key, meta = registry_key(prefix), Keys(prefix, name).meta
    client.command("SREM", key, name, key=key, patience=patience)
    if not client.command("EXISTS", meta, key=meta, patience=patience):
        return True
    client.command("SADD", key, name, key=key, patience=patience)
    return False


def names(client: FunctionClient, prefix: str) -> list[str]:
    """The names of the queues that exist, sorted; those that are gone are struck out."""
    listed = _listed(client, prefix)
    found: list[str] = []
    for at in range(0, len(listed), AT_ONCE):
        found += _existing(client, prefix, listed[at : at + AT_ONCE])
    return found


def _listed(client: FunctionClient, prefix: str) -> list[str]:
    cursor, found = "0", set[str]()
    while True:
        try:
            key = registry_key(prefix)
            reply = client.command("SSCAN", key, cursor, "COUNT", PAGE, key=key)
        except GroupMQError as error:
            if "WRONGTYPE" not in str(error):
                raise
            raise ConfigurationError(
                f"prefix: the key {registry_key(prefix)!r} at {client.session.where} is not a list of queues: another "
                "program wrote it; delete it and open the queues again, or use another prefix"
            ) from error
        found.update(name for name in map(_name, reply[1]) if name is not None)
        cursor = decoded(reply[0])
        if cursor == "0":
            return sorted(found)


def _name(raw: bytes | str) -> str | None:
    """The name of a queue; None for a member of the set that is not one."""
    try:
        return queue_name(raw.decode() if isinstance(raw, bytes) else raw)
    except ValueError:
        return None


def _existing(client: FunctionClient, prefix: str, listed: Sequence[str]) -> list[str]:
    try:
        # In a cluster the queues are in different slots, and one command must not name keys of two.
        if not client.session.is_in_cluster:
            count = client.command("EXISTS", *(Keys(prefix, name).meta for name in listed))
            if count == len(listed):
                return list(listed)
    except GroupMQError as error:
        if not _is_denied(error):
            raise
    found = []
    for name in listed:
        if _exists(client, prefix, name):
            found.append(name)
    return found


def _exists(client: FunctionClient, prefix: str, name: str) -> bool:
    """Whether a queue exists and this user may read it. A queue that is gone is struck out."""
    try:
        meta = Keys(prefix, name).meta
        if client.command("EXISTS", meta, key=meta):
            return True
    except GroupMQError as error:
        if not _is_denied(error):
            raise
        return False
    try:
        return not strike(client, prefix, name, patience=0.0)
    except GroupMQError:
        return False  # a replica, or a user who may only read: another process strikes it out


def _is_denied(error: GroupMQError) -> bool:
    return isinstance(error, ServerRefused) and error.kind == "NOPERM"
