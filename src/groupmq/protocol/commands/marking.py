"""Marks, such as that of a deployment: `lua/mark.lua`, `lua/marks.lua`."""

from __future__ import annotations

from groupmq.protocol.call import Call, arguments, text


def put_mark(label: str, at: int | None, now: int | None = None) -> Call[int]:
    """Put a mark at `at` (epoch ms), or at the server's time. Returns its time."""
    return Call("mark", arguments(label=label, at=at, now=now), int)


def marks(since: int | None) -> Call[list[tuple[int, str]]]:
    """The kept marks from `since` (epoch ms) on, oldest first."""

    def parse(reply: list[bytes]) -> list[tuple[int, str]]:
        pairs = (text(member).partition(" ") for member in reply)
        return [(int(at), label) for at, _, label in pairs]

    return Call("marks", arguments(since=since), parse)
