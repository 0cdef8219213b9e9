"""Blocking calls of several commands in one write, on connections of their own: those that wait for replicas or a disk,
and those that a node of a cluster must be asked for."""

from __future__ import annotations

import contextlib
from collections import deque
from typing import Any

from hiredis import pack_command

from groupmq.client.connection.address import Address
from groupmq.client.connection.faults import first_and_last, is_reply


class WaitingCalls:
    """The idle connections of one link. Safe in threads."""

    def __init__(self, pool: Any, address: Address) -> None:
        """`pool`: the client library's, which makes the connections."""
        self._pool = pool
        self._address = address
        self._idle: deque[tuple[Any, int]] = deque()

    def execute(self, *commands: tuple[Any, ...]) -> tuple[Any, Any]:
        """Send commands in one write, and return the first and the last reply. Raises if one of them is an error."""
        moves = self._address.moves
        connection = self._connection(moves)
        replies: list[Any] = []
        try:
            connection.send_packed_command([b"".join(map(pack_command, commands))], check_health=False)
            while len(replies) < len(commands):
                try:
                    replies.append(connection.read_response(disable_decoding=True))
                except Exception as error:
                    if not is_reply(error):
                        raise
                    replies.append(error)
        except BaseException:
            connection.disconnect()
            raise
        self._idle.append((connection, moves))
        return first_and_last(replies)

    def _connection(self, moves: int) -> Any:
        """A connection made after the primary moved for the `moves`-th time: the one used last, else a new one."""
        while True:
            try:
                connection, made_at = self._idle.pop()
            except IndexError:
                break
            if made_at == moves and _is_quiet(connection):
                return connection
            connection.disconnect()
        new: Any = self._pool.make_connection()
        new.connect()
        return new

    def close(self) -> None:
        while self._idle:
            with contextlib.suppress(Exception):
                self._idle.pop()[0].disconnect()


def _is_quiet(connection: Any) -> bool:
    """Whether nothing is left to read on a connection that is open: the next reply is that of the next command."""
    try:
        return not connection.can_read()
    except Exception:
        return False
