"""The terminal: taken over, drawn on, and given back as it was. The only module that writes escape codes."""

from __future__ import annotations

import contextlib
import os
import sys
import termios
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.text import Text

from groupmq.cli.monitor.draw import Size
from groupmq.cli.output.answers import console

# Another screen, no cursor, no wrapping: a letter that the terminal draws wider than we think stays in its line.
_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
_LEAVE = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"


def is_there() -> bool:
    """Whether there is a screen and a keyboard; otherwise frames are printed one after the other."""
    dumb = os.environ.get("TERM", "") in ("", "dumb")
    return not dumb and sys.stdout.isatty() and sys.stdin.isatty()


def rendered(out: Console, row: Text) -> str:
    """A line as the terminal gets it: with colours if it has any."""
    with out.capture() as captured:
        out.print(row, end="", no_wrap=True, overflow="ignore", crop=False)
    return captured.get()


class Terminal:
    """The screen and the keyboard, from `with` to the end of it, whatever happens in between.

    >>> with Terminal() as terminal:
    ...     terminal.show(frame(state, terminal.size, glyphs))
    """

    def __init__(self) -> None:
        self._keyboard = sys.stdin.fileno()
        self._screen = sys.stdout.fileno()
        self._console = console()
        self._before: list[Any] | None = None
        self._shown: list[str] = []

    @property
    def keyboard(self) -> int:
        return self._keyboard

    @property
    def size(self) -> Size:
        try:
            found = os.get_terminal_size(self._screen)
        except OSError:
            return Size(80, 24)
        return Size(found.columns or 80, found.lines or 24)

    def read(self) -> bytes:
        """The bytes that were typed; none if the terminal is gone."""
        try:
            return os.read(self._keyboard, 1024)
        except OSError:
            return b""

    def show(self, lines: list[Text]) -> None:
        """Draw a frame: only the lines that changed."""
        now = [rendered(self._console, row) for row in lines]
        whole = len(now) != len(self._shown)
        parts = ["\x1b[2J"] if whole else []
        for i, row in enumerate(now):
            if whole or row != self._shown[i]:
                parts.append(f"\x1b[{i + 1};1H\x1b[0m{row}\x1b[K")
        self._shown = now
        self._write("".join(parts))

    def forget(self) -> None:
        """Draw the next frame whole, whatever is on the screen now."""
        self._shown = []

    def take(self) -> None:
        """Take the terminal over: keys arrive one by one and are not echoed; Ctrl-C and Ctrl-Z are still signals."""
        self._before = termios.tcgetattr(self._keyboard)
        mode = termios.tcgetattr(self._keyboard)
        mode[0] &= ~(termios.IXON | termios.ICRNL)
        mode[3] &= ~(termios.ICANON | termios.ECHO)
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self._keyboard, termios.TCSADRAIN, mode)
        self.forget()
        self._write(_ENTER)

    def give_back(self) -> None:
        """Restore the terminal; does nothing the second time."""
        if self._before is None:
            return
        before, self._before = self._before, None
        with contextlib.suppress(OSError):
            self._write(_LEAVE)
        with contextlib.suppress(termios.error):
            termios.tcsetattr(self._keyboard, termios.TCSAFLUSH, before)

    def _write(self, text: str) -> None:
        raw = text.encode(sys.stdout.encoding or "utf-8", "backslashreplace")
        while raw:
            raw = raw[os.write(self._screen, raw) :]

    def __enter__(self) -> Self:
        self.take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.give_back()
