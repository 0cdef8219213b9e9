"""An independent reader of a queue's keys that reports every inconsistency between them.

It follows the layout in `lua/lib/keys.lua` and `record.lua` and shares no logic with the scripts.
"""

from __future__ import annotations

import redis

from tests.support.dump import Dump
from tests.support.keyspace.contents import Keyspace, StoredGroup
from tests.support.keyspace.invariants import violations
from tests.support.keyspace.reading import read

__all__ = ["Keyspace", "StoredGroup", "check", "read", "violations"]


def check(client: redis.Redis) -> None:
    """Check every queue on a server; fail with all broken invariants."""
    dump = Dump(client)
    found = []
    ours = [key for key in dump if b":{" in key and b"}:" in key]
    metas = [key for key in ours if key.endswith(b"}:meta")]
    for key in ours:
        if not any(key.startswith(meta[: -len("meta")]) for meta in metas):
            found.append(f"key {key!r} belongs to no queue: a leak")
    for key in metas:
        prefix, _, rest = key.decode().partition(":{")
        queue = rest[: -len("}:meta")]
        found += [f"{queue}: {line}" for line in violations(read(dump, prefix, queue))]
    assert not found, "broken invariants:\n  " + "\n  ".join(found)
