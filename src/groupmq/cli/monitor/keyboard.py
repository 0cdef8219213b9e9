"""What the bytes of a keyboard mean. Pure; half an escape sequence is kept for the next read."""

from __future__ import annotations

import re
from enum import Enum, auto


class KeyAction(Enum):
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
    """A key without a meaning; it never counts as a yes to a question."""


KEYS = {
    b"k": KeyAction.UP,
    b"j": KeyAction.DOWN,
    b"g": KeyAction.FIRST,
    b"G": KeyAction.LAST,
    b" ": KeyAction.PAGE_DOWN,
    b"\r": KeyAction.OPEN,
    b"\n": KeyAction.OPEN,
    b"\x7f": KeyAction.BACK,
    b"\x08": KeyAction.BACK,
    b"p": KeyAction.PAUSE,
    b"P": KeyAction.PAUSE,
    b"r": KeyAction.RETRY,
    b"R": KeyAction.RETRY,
    b"?": KeyAction.HELP,
    b"h": KeyAction.HELP,
    b"q": KeyAction.QUIT,
    b"Q": KeyAction.QUIT,
    b"\x03": KeyAction.QUIT,
    b"\x04": KeyAction.QUIT,
    b"y": KeyAction.YES,
    b"Y": KeyAction.YES,
    b"n": KeyAction.NO,
    b"N": KeyAction.NO,
}
# Keyed by what follows the introducer. Parameters, as in `1;5A` for Ctrl and an arrow, matter only before `~`.
SEQUENCES = {
    b"A": KeyAction.UP,
    b"B": KeyAction.DOWN,
    b"H": KeyAction.FIRST,
    b"F": KeyAction.LAST,
    b"M": KeyAction.OPEN,
    b"1~": KeyAction.FIRST,
    b"7~": KeyAction.FIRST,
    b"4~": KeyAction.LAST,
    b"8~": KeyAction.LAST,
    b"5~": KeyAction.PAGE_UP,
    b"6~": KeyAction.PAGE_DOWN,
}
ESCAPE = b"\x1b"
_LONGEST = 32
_SEQUENCE = re.compile(rb"\x1b(?:\[([0-?]*)[ -/]*([@-~])|O(.))", re.DOTALL)
_UNFINISHED = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|O)?", re.DOTALL)


class Decoder:
    """Turns what is read into actions.

    >>> Decoder().feed(b"j\\x1b[A")
    [<KeyAction.DOWN: 2>, <KeyAction.UP: 1>]
    """

    def __init__(self) -> None:
        self._rest = b""

    @property
    def waiting(self) -> bool:
        """Whether an escape sequence has begun: if nothing follows soon, it was the key Escape."""
        return bool(self._rest)

    def feed(self, data: bytes) -> list[KeyAction]:
        raw, found = self._rest + data, []
        self._rest = b""
        while raw:
            if raw.startswith(ESCAPE):
                if _UNFINISHED.fullmatch(raw) and len(raw) < _LONGEST:
                    self._rest = raw
                    break
                match = _SEQUENCE.match(raw)
                found.append(_meant(match) if match else KeyAction.BACK)
                raw = raw[match.end() if match else 1 :]
            else:
                found.append(KEYS.get(raw[:1], KeyAction.OTHER))
                raw = raw[1:]
        return found

    def end_wait(self) -> list[KeyAction]:
        """The action of a lone escape: nothing followed it, so it was the key."""
        rest, self._rest = self._rest, b""
        return [KeyAction.BACK] if rest else []


def _meant(match: re.Match[bytes]) -> KeyAction:
    parameters, final, after_o = match.groups()
    if after_o is not None:
        return SEQUENCES.get(after_o, KeyAction.OTHER)
    if final == b"~":
        return SEQUENCES.get(parameters.split(b";")[0] + b"~", KeyAction.OTHER)
    return SEQUENCES.get(final, KeyAction.OTHER) if final != b"M" else KeyAction.OTHER
