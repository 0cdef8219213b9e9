"""A worker process of a supervisor: `python -P -m groupmq.cli.child SOCKET NUMBER SPEC`, never called by people.

The plan comes over the socket, since a URL may hold a password and command lines can be seen by all. What the worker
is doing goes back, a line each second; when the socket ends, the supervisor has gone and the worker drains.
"""

from __future__ import annotations

import contextlib
import socket
import sys

from groupmq.cli import logs, running
from groupmq.cli.health import Report
from groupmq.cli.plan import Plan


def main() -> int:
    link = socket.socket(fileno=int(sys.argv[1]))
    link.set_inheritable(False)
    plan = Plan.from_json(_first_line(link))
    logs.set_up(plan.log_level, plan.log_format)

    def told(report: Report) -> None:
        # A supervisor that is slow to read misses a line, one that is gone all of them; neither stops the work.
        with contextlib.suppress(OSError):
            link.send(report.to_json() + b"\n")

    return running.run(running.Running(plan, int(sys.argv[2]), told, link).run())


def _first_line(link: socket.socket) -> str:
    """Byte by byte: nothing of what may follow is ours to take."""
    line = b""
    while (byte := link.recv(1)) not in (b"\n", b""):
        line += byte
    return line.decode()


if __name__ == "__main__":
    sys.exit(main())
