"""A worker process of a supervisor: `python -P -m groupmq.cli.worker.child SOCKET NUMBER SPEC`, never run by hand.

The plan comes over the socket: a URL may hold a password, and all users can read command lines. The child sends back a
report each second. When the socket closes, the supervisor is gone and the worker drains.
"""

from __future__ import annotations

import contextlib
import socket
import sys

from groupmq.cli.output import logs
from groupmq.cli.worker import lifecycle
from groupmq.cli.worker.health import ProcessReport
from groupmq.cli.worker.plan import WorkerPlan


def main() -> int:
    link = socket.socket(fileno=int(sys.argv[1]))
    link.set_inheritable(False)
    plan = WorkerPlan.from_json(_first_line(link))
    logs.set_up(plan.log_level, plan.log_format)

    def publish(report: ProcessReport) -> None:
        # A supervisor that reads slowly misses lines, and one that is gone misses all. Neither may stop the work.
        with contextlib.suppress(OSError):
            link.send(report.to_json() + b"\n")

    return lifecycle.run(lifecycle.WorkerLifecycle(plan, int(sys.argv[2]), publish, link).run())


def _first_line(link: socket.socket) -> str:
    """Read byte by byte: the bytes behind the line belong to the next reader."""
    line = b""
    while (byte := link.recv(1)) not in (b"\n", b""):
        line += byte
    return line.decode()


if __name__ == "__main__":
    sys.exit(main())
