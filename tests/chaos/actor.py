"""Entry point of one process of a chaos run, forked by `nursery.py`: sets its clock and release, then runs its role."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from typing import Any

from tests.chaos import skew
from tests.chaos.history import ACTOR, FOLDER, OWNER, HistoryFile

PULSE, STARVED = 0.1, 0.25


def watch_ourselves(history: HistoryFile, over: threading.Event | None = None) -> None:
    """Record when this process got no CPU time: a lease may expire because of that, without any injected fault."""
    last, over = time.monotonic(), over or threading.Event()
    while not over.wait(PULSE):
        now = time.monotonic()
        if now - last > STARVED:
            history.note("starved", since=last)
        last = now


def main(settings: dict[str, Any]) -> None:
    folder, name = settings["history"], settings["name"]
    os.environ |= {FOLDER: folder, ACTOR: name, OWNER: str(os.getpid())}
    history = HistoryFile(folder, name)
    threading.Thread(target=watch_ourselves, args=(history,), daemon=True).start()
    if settings.get("skew"):
        skew.shift(settings["skew"])
    from tests.chaos import releases

    logging.getLogger("groupmq").setLevel(logging.ERROR)  # failures and outages are expected here
    releases.use(settings.get("release"))
    match settings["role"]:
        case "worker":
            from tests.chaos import working

            asyncio.run(working.work(history, settings))
        case "producer":
            from tests.chaos import producing

            producing.produce(history, settings)
        case "duty":
            from tests.chaos import duties

            asyncio.run(duties.run(history, settings))
        case "operator":
            from tests.chaos import operating

            asyncio.run(operating.operate(history, settings))
        case "recorder":
            from tests.chaos import recording

            asyncio.run(recording.record(history, settings))
        case "tick scheduler":
            from tests.chaos import ticking

            asyncio.run(ticking.schedule(history, settings))
        case "tick worker":
            from tests.chaos import ticking

            asyncio.run(ticking.work(history, settings))
