"""One process of a chaos run, made by `nursery.py`: a clock, a release and a part to play."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from typing import Any

from tests.chaos import skew
from tests.chaos.diary import ACTOR, FOLDER, OWNER, Diary

PULSE, STARVED = 0.1, 0.25


def watch_ourselves(diary: Diary, over: threading.Event | None = None) -> None:
    """Note when this process was not given any time: a lease may run out by that, and no fault is to blame."""
    last, over = time.monotonic(), over or threading.Event()
    while not over.wait(PULSE):
        now = time.monotonic()
        if now - last > STARVED:
            diary.note("starved", since=last)
        last = now


def main(settings: dict[str, Any]) -> None:
    folder, name = settings["history"], settings["name"]
    os.environ |= {FOLDER: folder, ACTOR: name, OWNER: str(os.getpid())}
    diary = Diary(folder, name)
    threading.Thread(target=watch_ourselves, args=(diary,), daemon=True).start()
    if settings.get("skew"):
        skew.shift(settings["skew"])
    from tests.chaos import releases

    logging.getLogger("groupmq").setLevel(logging.ERROR)  # failures and outages are what this is all about
    releases.use(settings.get("release"))
    match settings["role"]:
        case "worker":
            from tests.chaos import working

            asyncio.run(working.work(diary, settings))
        case "producer":
            from tests.chaos import producing

            producing.produce(diary, settings)
        case "duty":
            from tests.chaos import duties

            asyncio.run(duties.run(diary, settings))
        case "operator":
            from tests.chaos import operating

            asyncio.run(operating.operate(diary, settings))
        case "recorder":
            from tests.chaos import recording

            asyncio.run(recording.record(diary, settings))
