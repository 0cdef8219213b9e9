"""One process of a chaos run: `python -m tests.chaos.actor JSON`. It ends when its standard input does."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
import threading
import time
from typing import Any

from tests.chaos import skew
from tests.chaos.diary import ACTOR, FOLDER, OWNER, Diary

PULSE, STARVED = 0.1, 0.5


def die_with_parent() -> None:
    with contextlib.suppress(OSError):
        os.read(0, 1)
    os._exit(14)


def watch_ourselves(diary: Diary) -> None:
    """Note when this process was not given any time: a lease may run out by that, and no fault is to blame."""
    last = time.monotonic()
    while True:
        time.sleep(PULSE)
        now = time.monotonic()
        if now - last > STARVED:
            diary.note("starved", since=last)
        last = now


def main(settings: dict[str, Any]) -> None:
    folder, name = settings["history"], settings["name"]
    os.environ |= {FOLDER: folder, ACTOR: name, OWNER: str(os.getpid())}
    diary = Diary(folder, name)
    for target, args in ((die_with_parent, ()), (watch_ourselves, (diary,))):
        threading.Thread(target=target, args=args, daemon=True).start()
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


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
