# Generated from src/groupmq/client/libraries.py by `make sync`; do not edit.
"""The function libraries of groupmq on a server: which are loaded, and which no process uses any more.

Each release brings its own library and never removes one, because another process may be using it. After an upgrade
`groupmq check --prune` finds and removes the old ones.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from groupmq.client.connection.address import Node
from groupmq.client.connection.replies import decoded
from groupmq.core.errors import ConnectionLost, GroupMQError
from groupmq.core.findings import OK, WARN
from groupmq.core.server_views import Finding
from groupmq.protocol import functions
from groupmq.sync.connection.function_client import FunctionClient

_NAME = "library_name"


def names(client: FunctionClient, node: Node | None = None) -> list[str]:
    """The names of the groupmq libraries of all releases; in a cluster, those on the queue's node or on `node`."""
    reply = client.command("FUNCTION", "LIST", "LIBRARYNAME", f"{functions.LIBRARIES}*", node=node)
    return sorted(_name(library) for library in reply)


def _name(library: Any) -> str:
    """The name of a library: depending on protocol and client, it is a mapping or a flat list of names and values."""
    items = library if isinstance(library, dict) else dict(zip(library[::2], library[1::2], strict=False))
    return next(decoded(value) for name, value in items.items() if decoded(name) == _NAME)


def prune(client: FunctionClient, used: Collection[str]) -> list[str]:
    """Delete the libraries that are neither ours nor `used`, and return their names.

    A process that does use one of them loads it again with its next call.
    """
    gone = set[str]()
    for node in client.primaries():
        found = names(client, node)
        here = [name for name in found if name != functions.library().name and name not in used]
        for name in here:
            _delete(client, name, node)
        gone.update(here)
    return sorted(gone)


def _delete(client: FunctionClient, name: str, node: Node | None) -> None:
    try:
        client.command("FUNCTION", "DELETE", name, node=node)
    except ConnectionLost:
        raise
    except GroupMQError as error:
        if "Library not found" not in str(error):  # another process has deleted it first
            raise


def finding(client: FunctionClient) -> Finding:
    """Test whether functions can be used, and which libraries are loaded."""
    try:
        found = names(client)
    except ConnectionLost:
        raise
    except GroupMQError:
        return Finding(
            "functions",
            WARN,
            "refused by the server; every call runs as a script, which takes the server about 0.1 ms longer",
            "allow FUNCTION, FCALL and FCALL_RO, if the server has them",
        )
    others = len([name for name in found if name != functions.library().name])
    detail = "this release's library is loaded" if len(found) > others else "this release's library is not loaded yet"
    if not others:
        return Finding("functions", OK, detail)
    more = "one of another release" if others == 1 else f"{others} of other releases"
    return Finding("functions", OK, f"{detail}, and {more}", "groupmq check --prune removes those that no worker uses")
