"""The live view: looks, keys and signals arrive in one inbox and change the state one after the other."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine
from dataclasses import replace
from enum import Enum, auto
from typing import Any, NamedTuple

from groupmq import ConnectionLost, GroupMQError, Job, QueueNotFound, QueueSurvey
from groupmq.cli.monitor.draw import frame, within
from groupmq.cli.monitor.fetch import QueueWatcher
from groupmq.cli.monitor.keyboard import Decoder, KeyAction
from groupmq.cli.monitor.state import Effect, Inspect, Quit, RetryFailed, State, Switch, press, seen, shown, with_notice
from groupmq.cli.monitor.terminal import Terminal
from groupmq.cli.monitor.text import Glyphs
from groupmq.cli.output import tables

ESCAPE_WAIT = 0.05
"""Seconds after which a lone escape is the key, not the beginning of an arrow key."""


class Typed(NamedTuple):
    raw: bytes


class Trouble(NamedTuple):
    """A look failed."""

    text: str


class ActionEnded(NamedTuple):
    """An action succeeded or failed."""

    text: str


class Fetched(NamedTuple):
    job_id: str
    job: Job | None


class Notice(Enum):
    """Messages that carry no data."""

    WAIT_OVER = auto()
    RESIZED = auto()
    SUSPEND = auto()
    END = auto()


InboxMessage = Typed | Trouble | ActionEnded | Fetched | Notice | QueueSurvey | BaseException


def trouble(error: GroupMQError, where: str) -> str:
    """Why a look failed, in one line."""
    if isinstance(error, ConnectionLost):
        return f"cannot reach {where}, trying again"
    if isinstance(error, QueueNotFound):
        return f"queue {error.name!r} does not exist at {where}; looking again"
    return f"{' '.join(str(error).split())}; trying again"


class LiveView:
    """The monitor on a terminal, until the user quits."""

    def __init__(self, watcher: QueueWatcher, terminal: Terminal, state: State, glyphs: Glyphs) -> None:
        self.state = state
        self._watcher = watcher
        self._terminal = terminal
        self._glyphs = glyphs
        self._decoder = Decoder()
        self._inbox: asyncio.Queue[InboxMessage] = asyncio.Queue()
        self._look_now = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        notices = {
            signal.SIGINT: Notice.END,
            signal.SIGTERM: Notice.END,
            signal.SIGHUP: Notice.END,
            signal.SIGWINCH: Notice.RESIZED,
            signal.SIGTSTP: Notice.SUSPEND,
        }
        for number, notice in notices.items():
            loop.add_signal_handler(number, self._inbox.put_nowait, notice)
        try:
            with self._terminal:
                loop.add_reader(self._terminal.keyboard, self._read_keys)
                self._start(self._keep_looking())
                try:
                    await self._serve()
                finally:
                    loop.remove_reader(self._terminal.keyboard)
        finally:
            await self._end_tasks()
            for number in notices:
                loop.remove_signal_handler(number)

    async def _serve(self) -> None:
        self._draw()
        while not self._take(await self._inbox.get()):
            if self._inbox.empty():
                self._draw()

    def _take(self, message: InboxMessage) -> bool:
        """Apply a message to the state; True if it ends the monitor."""
        match message:
            case BaseException():
                raise message
            case Notice.END:
                return True
            case Notice.RESIZED:
                self._terminal.forget()
            case Notice.SUSPEND:
                self._suspend()
            case Notice.WAIT_OVER:
                return self._press(self._decoder.end_wait())
            case Typed(raw):
                return self._press(self._decoder.feed(raw))
            case QueueSurvey():
                self.state = seen(self.state, message)
            case Trouble(text):
                self.state = replace(self.state, trouble=text)
            case ActionEnded(text):
                self.state = with_notice(self.state, text)
            case Fetched(job_id, job):
                self.state = shown(self.state, job_id, job)
        return False

    def _press(self, actions: list[KeyAction]) -> bool:
        if self._decoder.waiting:
            asyncio.get_running_loop().call_later(ESCAPE_WAIT, self._inbox.put_nowait, Notice.WAIT_OVER)
        for action in actions:
            self.state, effect = press(self.state, action)
            self.state = within(self.state, self._terminal.size, self._glyphs)
            if isinstance(effect, Quit):
                return True
            if effect is not None:
                self._start(self._carry_out(effect))
        return False

    def _draw(self) -> None:
        self._terminal.show(frame(self.state, self._terminal.size, self._glyphs))

    def _read_keys(self) -> None:
        raw = self._terminal.read()
        self._inbox.put_nowait(Typed(raw) if raw else Notice.END)

    def _suspend(self) -> None:
        """Ctrl-Z: give the screen back to the shell, and take it again when the process is continued."""
        self._terminal.give_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._terminal.take()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _end_tasks(self) -> None:
        left = set(self._tasks)
        while left:
            # Repeatedly, because a call under way may swallow a cancellation.
            for task in left:
                task.cancel()
            _, left = await asyncio.wait(left, timeout=0.1)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """An unexpected error ends the monitor by way of the inbox, so that the terminal is given back first."""
        try:
            await work
        except Exception as error:
            self._inbox.put_nowait(error)

    async def _keep_looking(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + self.state.interval
        while True:
            try:
                async with asyncio.timeout_at(due):
                    await self._look_now.wait()
            except TimeoutError:
                pass
            self._look_now.clear()
            due = loop.time() + self.state.interval
            try:
                self._inbox.put_nowait(await self._watcher.look())
                if (job_id := self.state.job_id) is not None:
                    self._inbox.put_nowait(Fetched(job_id, await self._watcher.job(job_id)))
            except GroupMQError as error:
                self._inbox.put_nowait(Trouble(trouble(error, self._watcher.where)))

    async def _carry_out(self, effect: Effect) -> None:
        try:
            match effect:
                case Switch(paused):
                    await self._watcher.switch(paused=paused)
                    result = f"{self.state.queue} is {'paused; running jobs go on' if paused else 'running'}"
                case RetryFailed(job_id):
                    await self._watcher.retry(job_id)
                    result = f"job {tables.words(job_id)} waits to run again"
                case Inspect(job_id):
                    self._inbox.put_nowait(Fetched(job_id, await self._watcher.job(job_id)))
                    return
                case Quit():
                    return
        except GroupMQError as error:
            result = " ".join(str(error).split())
        self._inbox.put_nowait(ActionEnded(result))
        self._look_now.set()
