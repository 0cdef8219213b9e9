"""A call whose request or reply is lost, executed step by step, for tests that choose when each step happens."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import redis

from groupmq.client.connection.faults import is_no_function, is_no_script, understood
from groupmq.core.errors import ScriptError, ServerRefused
from groupmq.protocol import functions
from groupmq.protocol.commands import Call
from groupmq.protocol.requesters import Predecessor, Request
from groupmq.sync.connection.connections import BlockingConnection
from tests.support.by_hand import ClientByHand

T = TypeVar("T")


class Before:
    """A call that another one follows, and that has been answered by the time the client asks."""

    def __init__(self, requester: str = "never sent", number: int = 1) -> None:
        self.request = Request(requester, number)

    async def succeeded(self) -> None:
        pass


class Unanswered(Generic[T]):
    """A call in progress, sent exactly as the client sends it. The queue must be open."""

    def __init__(
        self, connection: BlockingConnection, client: redis.Redis, call: Call[T], follows: Predecessor | None = None
    ) -> None:
        """`follows`: the call that must take effect before this one."""
        self._client: Any = client
        self._call = call
        self._steps = ClientByHand(connection.session).call(call, patience=60.0, follows=follows)
        self._first: Any = self._steps.send(None)

    @property
    def requester(self) -> str:
        requester: str = self._first[7]
        return requester

    @property
    def number(self) -> int:
        number: int = self._first[8]
        return number

    @property
    def is_kept(self) -> bool:
        """Whether the server has stored the answer of this call."""
        number = b"%d " % self.number
        base: str = self._first[3].removesuffix("meta")
        kept = [self._client.hget(f"{base}calls_{which}", self.requester) for which in ("even", "odd")]
        return any(raw.startswith(number) for raw in kept if raw)

    def arrives(self) -> T:
        """The first request reaches the server now. Returns the reply, which the client does not get."""
        raw = self._execute(self._first)
        try:
            return self._call.parse(raw)
        except (ValueError, TypeError, AttributeError) as error:
            raise AssertionError(f"the answer of another call: {raw}") from error

    def arrives_too_early(self) -> None:
        """The first request reaches the server before the call that it follows, and is refused. The client makes the
        call once more when that one has been answered; that request has not arrived yet."""
        try:
            self._execute(self._first)
        except ScriptError as error:
            refusal = error
        else:
            raise AssertionError("a call has taken effect before the call that it follows")
        if "GROUPMQ_ORDER" not in str(refusal):
            raise refusal
        self._first = self._steps.throw(refusal)

    def send_again(self) -> T:
        """The client notices that its connection is broken and resends the call. Returns the reply, which it gets."""
        assert isinstance(self._steps.throw(redis.ConnectionError("the reply was lost")), float)
        try:
            command = self._steps.send(None)
            try:
                reply = self._reply(command)
            except ServerRefused as refusal:
                reply = self._execute(self._steps.throw(refusal), "look_kept_reply")
            while isinstance(reply, redis.exceptions.ResponseError):
                # The settings have changed since: the client reads them and sends the call once more.
                command = self._steps.throw(reply)
                command = self._steps.send(self._execute(command, "look_settings"))
                reply = self._reply(command)
            self._steps.send(reply)
        except StopIteration as stop:
            answer: T = stop.value
            return answer
        except (ValueError, TypeError, AttributeError) as error:
            raise AssertionError("the answer of another call") from error
        raise AssertionError("the client does not accept the answer")

    def _reply(self, command: Any) -> Any:
        try:
            return self._execute(command)
        except ScriptError as error:
            if "GROUPMQ_SETTINGS" not in str(error):
                raise
            return redis.exceptions.ResponseError(str(error))

    def _execute(self, command: Any, function: str = "") -> Any:
        try:
            try:
                return self._client.execute_command(*command, NEVER_DECODE=True)
            except redis.exceptions.ResponseError as error:
                script = functions.load(function or self._call.script)
                if is_no_script(error):
                    self._client.script_load(script.text)
                elif is_no_function(error):
                    try:
                        self._client.function_load(script.library.text)
                    except redis.exceptions.OutOfMemoryError:  # EVAL needs no memory for a library
                        command = ("EVAL", script.text, *command[2:])
                else:
                    raise
                return self._client.execute_command(*command, NEVER_DECODE=True)
        except redis.exceptions.ResponseError as error:
            raise understood(error, "the server") from error
