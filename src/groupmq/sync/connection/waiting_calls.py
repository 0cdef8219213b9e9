"""Blocking calls that wait for replicas or a disk: several commands in one write, on connections of their own."""

from __future__ import annotations

import contextlib
from collections import deque
from typing import Any

from hiredis import pack_command

from groupmq.client.connection.endpoint import CALL_TIMEOUT, Endpoint
from groupmq.client.connection.faults import first_and_last, is_reply
from groupmq.client.connection.session import Session
from groupmq.core.loops import this_process


class WaitingCalls:
    """The idle connections of one queue object. Safe in threads and after a fork."""

    def __init__(self, endpoint: Endpoint, session: Session) -> None:
        durability = session.options.durability
        wait = 0.0 if durability is None else durability.timeout_ms / 1000
        self._session = session
        self._address = endpoint.address
        self._pool = endpoint.beside(wait + CALL_TIMEOUT).blocking().connection_pool
        self._idle: deque[tuple[Any, int]] = deque()
        self._process = this_process()

    def execute(self, *parts: Any) -> tuple[Any, Any]:
        """Send a command and what waits for it to be durable; the first and the last reply."""
        moves = self._address.moves
        connection = self._connection(moves)
        replies: list[Any] = []
        try:
            commands = (parts, *self._session.confirmation())
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
        """One that leads to the primary as it is known after so many moves: the last that was used, else a new one."""
        if self._process != this_process():
            self._idle, self._process = deque(), this_process()  # those are the parent's
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
    """Whether a connection is open and has nothing to say, as one must that gets the next command."""
    try:
        return not connection.can_read()
    except Exception:
        return False
