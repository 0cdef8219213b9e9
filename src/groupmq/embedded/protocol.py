"""Single commands to the embedded server over its socket, in the raw protocol, before any client exists."""

from __future__ import annotations

import socket
from pathlib import Path

TIMEOUT = 5.0


class CommandRefused(Exception):
    """The server answered with an error; its text, without the code in front."""


def ask(server: Path, *words: str) -> str:
    """The answer to one command as text. OSError if no server answers, CommandRefused if it refuses the command."""
    parts = [word.encode() for word in words]
    message = b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(TIMEOUT)
        connection.connect(str(server))
        connection.sendall(message)
        with connection.makefile("rb") as reply:
            line = reply.readline()
            if not line.endswith(b"\n"):
                raise ConnectionError("the server closed the connection")
            kind, text = line[:1], line[1:].rstrip().decode(errors="replace")
            if kind == b"-":
                raise CommandRefused(text.removeprefix("ERR "))
            return reply.read(int(text)).decode(errors="replace") if kind == b"$" else text
