"""All keys of a server, read at one instant in one round trip, so that checking after every step is cheap.

Those of a cluster are read from one primary after the other: all keys of a queue or a partition are on one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import redis

from tests.support.cluster_client import nodes_of

_SCRIPT = """
local all = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  local value
  if kind == 'hash' then value = redis.call('HGETALL', key)
  elseif kind == 'zset' then value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif kind == 'list' then value = redis.call('LRANGE', key, 0, -1)
  elseif kind == 'stream' then value = redis.call('XRANGE', key, '-', '+')
  else value = {} end
  all[#all + 1] = {key, kind, value}
end
return {redis.call('TIME'), all}
"""


class Dump:
    """The keys by their names, and the server's clock, in milliseconds."""

    def __init__(self, client: redis.Redis) -> None:
        """`client` must not decode responses."""
        self._values: dict[bytes, tuple[str, list[Any]]] = {}
        for node in nodes_of(client):
            c: Any = node
            (seconds, micros), found = c.eval(_SCRIPT, 0)
            self.now = int(seconds) * 1000 + int(micros) // 1000
            self._values |= {key: (kind.decode(), value) for key, kind, value in found}

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._values)

    def members(self, key: str | bytes) -> list[bytes]:
        """The members of a sorted set, in order."""
        return self._at(key, "zset")[::2]

    def scores(self, key: str | bytes) -> dict[bytes, float]:
        flat = self._at(key, "zset")
        return dict(zip(flat[::2], map(float, flat[1::2]), strict=True))

    def fields(self, key: str | bytes) -> dict[bytes, bytes]:
        """The fields of a hash."""
        return _pairs(self._at(key, "hash"))

    def items(self, key: str | bytes) -> list[bytes]:
        """The items of a list."""
        return self._at(key, "list")

    def entries(self, key: str | bytes) -> list[tuple[bytes, dict[bytes, bytes]]]:
        """The entries of a stream."""
        return [(entry_id, _pairs(flat)) for entry_id, flat in self._at(key, "stream")]

    def _at(self, key: str | bytes, kind: str) -> list[Any]:
        """The value of a key, empty if it does not exist. A key of another type is an error, not an empty value."""
        found, value = self._values.get(key if isinstance(key, bytes) else key.encode(), (kind, []))
        assert found == kind, f"{key!r} is a {found}, not a {kind}"
        return value


def _pairs(flat: list[bytes]) -> dict[bytes, bytes]:
    return dict(zip(flat[::2], flat[1::2], strict=True))
