"""Calling functions of the Lua side: opening the queue, loading the library, and sending a call again.

A library is loaded once and costs a call nothing; a script is set up again by each call, which takes the server about
100 us. Some servers have no FUNCTION, and some users may not use it, so both ways exist, and the first call finds out
which one works. Every function is safe to resend: it does the same again without harm, or the server has kept its
answer, which it finds by the requester and the number that are sent with the call (`protocol/requesters.py`,
`lua/lib/kept_replies.lua`).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import Any, Protocol, TypeVar

from groupmq.client.connection.address import Node
from groupmq.client.connection.faults import (
    is_no_function,
    is_no_script,
    is_out_of_memory,
    is_unavailable,
    understood,
)
from groupmq.client.connection.patience import PATIENCE, Patience
from groupmq.client.connection.session import Session
from groupmq.core.errors import ConfigurationError, ConnectionLost, GroupMQError, ScriptError, ServerRefused
from groupmq.core.queue_options import QueueArguments
from groupmq.core.settings import StoredQueue
from groupmq.protocol import commands, functions
from groupmq.protocol.call import Call
from groupmq.protocol.commands import look_kept_reply
from groupmq.protocol.functions import Script
from groupmq.protocol.requesters import Predecessor, Request

T = TypeVar("T")
Command = tuple[Any, ...]

_TRIES = 3
"""Another client may flush the functions again while we load ours; after this many tries the call goes as a script.
A call whose queue is gone, or whose settings have changed, is also tried at most this often."""


class Sender(Protocol):
    """Sends one command."""

    async def __call__(self, *parts: Any) -> Any: ...


class FunctionClient:
    """Calls the functions of one queue. Subclasses define how one command is sent and how to sleep."""

    def __init__(self, session: Session, patience: float = PATIENCE) -> None:
        self.session = session
        self.patience = patience

    async def execute(self, *parts: Any) -> Any:
        """Send one command and return its reply as it came. Errors are those of the client library."""
        raise NotImplementedError

    async def execute_and_wait(self, *parts: Any) -> tuple[Any, Any]:
        """Send one command, wait for what the queue's durability requires, and return both replies as they came."""
        raise NotImplementedError

    async def execute_for(self, key: str, *parts: Any) -> Any:
        """Send one command about one key, which in a cluster may live on another node than the queue."""
        return await self.execute(*parts)

    def whereabouts(self) -> str:
        """Which server of Sentinel or of a cluster this is; empty for a single server."""
        return ""

    async def primaries(self) -> list[Node | None]:
        """The primaries of a cluster; [None] for a single server."""
        return [None]

    async def execute_at(self, node: Node | None, *parts: Any) -> Any:
        """Send one command to one of `primaries`."""
        return await self.execute(*parts)

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError

    async def call(
        self,
        call: Call[T],
        patience: float | None = None,
        request: Request | None = None,
        follows: Predecessor | None = None,
    ) -> T:
        """Make a call. While the server cannot be reached, try again for up to `patience` seconds.

        `request`: one that was taken for this call. `follows`: a call that may still be under way, and that must take
        effect before this one; if it fails, this one raises the same error, and has not taken effect.
        """
        session = self.session
        session.require_open()
        if call.after:
            await self.sleep(call.after)
        patient = Patience(self.patience if patience is None else patience)
        if request is None and functions.load(call.script).remembers:
            request = session.requesters.take()
        proof: Command = request or ()
        again: Command = ()
        while True:
            order: Command = (*(again or (b"",)), *follows.request) if follows else again
            try:
                if not session.opened:
                    await self.open()
                if session.entry.due <= time.monotonic():
                    await self.enter()
                answer = await self._evaluate(call, proof + order)
                if request and not again:
                    session.requesters.give_back(request)
                return answer
            except GroupMQError as error:
                if follows and "GROUPMQ_ORDER" in str(error):
                    await follows.succeeded()
                    follows = None  # it has taken effect: from now on this call need not name it
                    continue
                if request and again and isinstance(error, ServerRefused) and error.kind == "OOM":
                    # This try was refused before it began, but an earlier one may have been carried out.
                    answers = await self._evaluate(look_kept_reply(request))
                    if answers and not session.must_be_durable(call.script):
                        return call.parse(answers[0])
                if request and isinstance(error, ConnectionLost):
                    again = (b"again",)  # it may have arrived
                pause = patient.pause_after(error)
                if pause is None:
                    raise
            await self.sleep(pause)

    async def call_closed(self, call: Call[T]) -> T:
        """Make a call that needs no open queue, without another try."""
        return await self._evaluate(call)

    async def open(self) -> None:
        """Create the queue, or check that this process agrees with how it was created."""
        session = self.session
        if session.needs_fsync:
            await self._require_fsync()
        stored = await self._evaluate(session.opening_call())
        if session.partition is not None:
            await self._update_partition(stored)
            return
        session.check_opened(stored)
        if session.creates:
            await self.enter()

    async def ready(self, patience: float | None = None) -> None:
        """Open the queue if this process has not done so; while the server cannot be reached, try again."""
        self.session.require_open()
        if not self.session.opened:
            await self.reopen(patience)

    async def reopen(self, patience: float | None = None) -> None:
        """Open the queue, even if this process has done so, to read what is stored; try again as in `ready`."""
        self.session.require_open()
        patient = Patience(self.patience if patience is None else patience)
        while True:
            try:
                return await self.open()
            except GroupMQError as error:
                pause = patient.pause_after(error)
                if pause is None:
                    raise
            await self.sleep(pause)

    async def _update_partition(self, stored: StoredQueue) -> None:
        """Use a partition. It gets the settings of its queue if it has others. `stored`: its settings as just read.

        The settings of the queue are read after those. A process that changes the number of partitions closes the queue
        first. So either the queue refuses, or that process still sees what is added to an existing partition. Settings
        read earlier could also replace newer ones. A partition that was just made gets the revision of the queue only
        at the end: until then it refuses the calls of processes that still use the old partitions, and those read the
        settings of the queue too.
        """
        session = self.session
        session.opened = False
        while True:
            if stored.schema is None:
                stored = await self._evaluate(session.making_call())
            session.check_partition(stored)
            await self._ask_queue()
            wanted = session.whole.revision
            if stored.revision == wanted:
                break
            try:
                stored = await self._evaluate(session.updating_call(stored))
            except ServerRefused as error:
                if session.whole.creates or error.kind != "NOPERM":
                    raise
                break  # a user who may only read sees the partition as it is
            if stored.revision == wanted:
                break
        session.opened = True

    async def _ask_queue(self) -> None:
        """For a partition: read the stored settings of the queue itself. Raises if that has other partitions."""
        session = self.session
        if session.confirm is not None:
            asked = session.confirm()
            if isinstance(asked, Awaitable):  # a blocking queue whose events are read asks over its own connection
                asked = await asked
            return
        try:
            reply = await self.execute_for(session.settings_key, *commands.read_settings(session.settings_key))
        except Exception as error:
            raise understood(error, session.where) from error
        stored = commands.stored_queue(reply)
        if stored.schema is not None:  # else it was flushed, and the worker itself makes it again
            session.check_opened(stored)

    async def reconfigure(self, changes: QueueArguments) -> bool:
        """Change the stored settings in one write, and return whether the scripts act on any of the changed ones.

        No change is lost: if another process was faster, this change is applied to the settings that it has stored.
        """
        self.session.require_open()
        patient = Patience(self.patience)
        stored = await self._evaluate_patiently(commands.look_at_queue(), patient)
        while True:
            was, wanted = stored, self.session.changed(stored, changes)
            # If the call is sent again after it was carried out, it finds the wanted settings, and writes nothing.
            stored = await self._evaluate_patiently(commands.open_queue(wanted, was), patient)
            if (stored.config, stored.handling) == (wanted.shared, wanted.handling):
                break
        self.session.has_changed(stored, changes)
        await self.enter()
        return was.config != stored.config

    async def enter(self) -> None:
        """Enter the queue in the list of queues. If that fails, it is missing there, and everything else works."""
        entry = self.session.entry
        entry.due = 0.0
        try:
            await self.execute_for(entry.key, *entry.command)
        except Exception as error:
            entry.not_written(error)
        else:
            entry.written()

    async def command(
        self, *parts: Any, patience: float | None = None, key: str | None = None, node: Node | None = None
    ) -> Any:
        """Send a command that is about the server or about all of its queues. It must be safe to send again.

        In a cluster it goes to the owner of the queue's slot, or of the slot of `key`, or to `node`.
        Errors are ours; while the server cannot be reached, try again for up to `patience` seconds.
        """
        self.session.require_open()
        patient = Patience(self.patience if patience is None else patience)
        while True:
            try:
                if key is not None:
                    return await self.execute_for(key, *parts)
                if node is not None:
                    return await self.execute_at(node, *parts)
                return await self.execute(*parts)
            except Exception as error:
                known = understood(error, self.session.where)
                pause = patient.pause_after(known)
                if pause is None:
                    raise known from error
            await self.sleep(pause)

    async def _evaluate_patiently(self, call: Call[T], patient: Patience) -> T:
        """Run a function that is safe to send again, and try again while the server cannot be reached."""
        while True:
            try:
                return await self._evaluate(call)
            except GroupMQError as error:
                pause = patient.pause_after(error)
                if pause is None:
                    raise
            await self.sleep(pause)

    async def _evaluate(self, call: Call[T], proof: Command = ()) -> T:
        """Run a function once. `proof`, for lib/kept_replies.lua: requester and number, whether it was sent before, and
        requester and number of the call that must come before it."""
        session = self.session
        script = functions.load(call.script)
        waits = session.must_be_durable(call.script)
        send = self.execute_and_wait if waits else self.execute
        for left in reversed(range(_TRIES)):
            # The last try is not checked: another process may change settings as fast as this one reads them.
            revision = session.known.revision if left > 0 else b""
            tail: Command = (1, session.keys.meta, call.args)
            if call.blob or proof or revision:
                tail = (*tail, call.blob, revision, *proof)
            try:
                if session.calls_by == "function":
                    reply = await self._by_function(send, script, tail)
                else:
                    reply = await self._by_script(send, script, tail)
            except Exception as error:
                known = understood(error, session.where)
                if not isinstance(known, ScriptError):
                    raise known from error
                if "GROUPMQ_SETTINGS" in str(known):
                    await self._learn()
                    continue
                if "GROUPMQ_SCHEMA" not in str(known):
                    raise ScriptError(f"{script.name}: {script.explain(str(known))}") from error
            else:
                if not waits:
                    return call.parse(reply)
                session.check_durable(call.script, reply[1])
                return call.parse(reply[0])
            # The queue is gone (flushed, obliterated) or has another format: opening it shows which.
            await self.open()
        name = session.options.name
        raise ScriptError(f"{script.name}: queue {name!r} was deleted each time it was opened")

    async def _learn(self) -> None:
        """Read the stored settings, which have changed, so that calls use them from now on."""
        stored = await self._evaluate(commands.look_at_queue())
        if self.session.partition is not None:
            if stored.schema is not None:  # else the call that is made again opens it
                await self._update_partition(stored)
        elif stored.schema is not None or not self.session.creates:
            self.session.check_opened(stored)

    async def _require_fsync(self) -> None:
        """Refuse a server that cannot wait for its disk, before anything is written to it."""
        session = self.session
        try:
            await self.execute("WAITAOF", 1, 0, 1)
        except Exception as error:
            if is_unavailable(error, "waitaof"):
                reason = "has no WAITAOF, which needs Redis 7.2 or Valkey 7.2"
            elif "appendonly is disabled" in str(error):
                reason = "has no append-only file; set `appendonly yes` there"
            else:
                raise understood(error, session.where) from error
            raise ConfigurationError(f"durability: the server at {session.where} {reason}") from error
        session.needs_fsync = False

    async def _by_function(self, send: Sender, script: Script, tail: Command) -> Any:
        """Call a function, or its script if the server refuses functions. `tail`: number of keys, key, arguments."""
        command = ("FCALL_RO" if script.reads else "FCALL", script.function, *tail)
        refusal: Exception | None = None
        for _ in range(_TRIES):
            try:
                return await send(*command)
            except Exception as error:
                if is_no_function(error):
                    refusal = await self._load(script)
                elif is_unavailable(error, "fcall"):
                    refusal = error
                else:
                    raise
            if refusal is not None:
                break
        try:
            reply = await self._by_script(send, script, tail)
        except Exception as error:
            known = None if refusal is None else understood(refusal, self.session.where)
            if isinstance(known, ServerRefused) and is_unavailable(error, "eval"):
                raise known from refusal
            raise
        # Only after a script has run: a user who may only call functions that read is refused scripts too. After one
        # refused write, all reads of that user would be refused as well.
        if refusal is not None and not is_out_of_memory(refusal):
            self.session.calls_by = "script"
        return reply

    async def _load(self, script: Script) -> Exception | None:
        """Load the library. Returns the refusal if that cannot be done now, or ever."""
        try:
            await self.execute("FUNCTION", "LOAD", script.library.text)
        except Exception as error:
            if "already exists" in str(error):
                return None  # another client was faster; the text is the same, since the name contains its hash
            if is_unavailable(error, "function") or is_out_of_memory(error):
                return error  # loading takes memory; reports must go on, and a script takes none
            raise
        return None

    async def _by_script(self, send: Sender, script: Script, tail: Command) -> Any:
        ending = "_RO" if script.reads else ""
        try:
            return await send(f"EVALSHA{ending}", script.sha, *tail)
        except Exception as error:
            if not is_no_script(error):
                raise
        return await send(f"EVAL{ending}", script.text, *tail)
