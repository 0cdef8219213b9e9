"""What the bytes of a keyboard mean. Pure; half an escape sequence is kept for the next read."""

from __future__ import annotations

import re
from enum import Enum, auto


class Action(Enum):
    """What a key asks for, whatever page is shown."""

    UP = auto()
    DOWN = auto()
    PAGE_UP = auto()
    PAGE_DOWN = auto()
    FIRST = auto()
    LAST = auto()
    OPEN = auto()
    BACK = auto()
    PAUSE = auto()
    RETRY = auto()
    HELP = auto()
    QUIT = auto()
    YES = auto()
    NO = auto()
    OTHER = auto()
    """A key without a meaning; it answers no question with yes."""


KEYS = {
    b"k": Action.UP,
    b"j": Action.DOWN,
    b"g": Action.FIRST,
    b"G": Action.LAST,
    b" ": Action.PAGE_DOWN,
    b"\r": Action.OPEN,
    b"\n": Action.OPEN,
    b"\x7f": Action.BACK,
    b"\x08": Action.BACK,
    b"p": Action.PAUSE,
    b"P": Action.PAUSE,
    b"r": Action.RETRY,
    b"R": Action.RETRY,
    b"?": Action.HELP,
    b"h": Action.HELP,
    b"q": Action.QUIT,
    b"Q": Action.QUIT,
    b"\x03": Action.QUIT,
    b"\x04": Action.QUIT,
    b"y": Action.YES,
    b"Y": Action.YES,
    b"n": Action.NO,
    b"N": Action.NO,
}
# By what follows the introducer; parameters, as in `1;5A` for Ctrl and an arrow, do not matter but for `~`.
SEQUENCES = {
    b"A": Action.UP,
    b"B": Action.DOWN,
    b"H": Action.FIRST,
    b"F": Action.LAST,
    b"M": Action.OPEN,
    b"1~": Action.FIRST,
    b"7~": Action.FIRST,
    b"4~": Action.LAST,
    b"8~": Action.LAST,
    b"5~": Action.PAGE_UP,
    b"6~": Action.PAGE_DOWN,
}
ESCAPE = b"\x1b"
_LONGEST = 32
_SEQUENCE = re.compile(rb"\x1b(?:\[([0-?]*)[ -/]*([@-~])|O(.))", re.DOTALL)
_UNFINISHED = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|O)?", re.DOTALL)


class Decoder:
    """Turns what is read into actions.

    >>> Decoder().feed(b"j\\x1b[A")
    [<Action.DOWN: 2>, <Action.UP: 1>]
    """

    def __init__(self) -> None:
        self._rest = b""

    @property
    def waiting(self) -> bool:
        """Whether an escape sequence has begun: if nothing follows soon, it was the key Escape."""
        return bool(self._rest)

    def feed(self, data: bytes) -> list[Action]:
        raw, found = self._rest + data, []
        self._rest = b""
        while raw:
            if raw.startswith(ESCAPE):
                if _UNFINISHED.fullmatch(raw) and len(raw) < _LONGEST:
                    self._rest = raw
                    break
                match = _SEQUENCE.match(raw)
                found.append(_meant(match) if match else Action.BACK)
                raw = raw[match.end() if match else 1 :]
            else:
                found.append(KEYS.get(raw[:1], Action.OTHER))
                raw = raw[1:]
        return found

    def settle(self) -> list[Action]:
        """Nothing followed."""
        rest, self._rest = self._rest, b""
        return [Action.BACK] if rest else []


def _meant(match: re.Match[bytes]) -> Action:
    parameters, final, after_o = match.groups()
    if after_o is not None:
        return SEQUENCES.get(after_o, Action.OTHER)
    if final == b"~":
        return SEQUENCES.get(parameters.split(b";")[0] + b"~", Action.OTHER)
    return SEQUENCES.get(final, Action.OTHER) if final != b"M" else Action.OTHER
