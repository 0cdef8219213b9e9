"""Fork server for the processes of a run: `python -m tests.chaos.nursery`. On a busy machine imports take seconds.

It has imported everything and has no connection, event loop or thread. Each line on standard input is the settings of
an actor to start. On standard output it reports the process id of each actor, and the exit code of each that has ended.
All actors die with it, and it exits when its standard input is closed.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from tests.chaos import actor, duties, operating, producing, recording, releases, ticking, working

LOADED = (duties, operating, producing, recording, releases, ticking, working)
_PDEATHSIG = 1
_REAP = 0.02


def send(**what: Any) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")


def become(settings: dict[str, Any], parent: int) -> None:
    """In the child: run the actor, then exit."""
    ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(14)
    log = Path(settings["history"]) / f"{settings['name']}.log"
    written = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (written, 1), (written, 2)):
        os.dup2(source, target)
    code = 0
    try:
        actor.main(settings)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stderr.flush()
    os._exit(code)


def reap() -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        send(ended=pid, code=os.waitstatus_to_exitcode(status))


def main() -> None:
    rest, parent = b"", os.getpid()
    send(ready=True)
    while True:
        readable, _, _ = select.select([0], [], [], _REAP)
        reap()
        if not readable:
            continue
        data = os.read(0, 1 << 16)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            settings = json.loads(line)
            pid = os.fork()
            if pid == 0:
                become(settings, parent)
            send(began=pid, name=settings["name"])


if __name__ == "__main__":
    main()
