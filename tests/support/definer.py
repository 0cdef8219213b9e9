"""A program that defines the same repeating job over and over: `python -m tests.support.definer JSON`."""

from __future__ import annotations

import json
import sys
from typing import Any

from groupmq import Every
from groupmq.sync import Queue


def main(settings: dict[str, Any]) -> None:
    with Queue(settings["queue"], settings["url"]) as queue:
        for n in range(settings["times"]):
            data = {"by": settings["name"], "n": n}
            queue.add(data, group_id=settings["group"], repeat=Every(settings["every"], key=settings["key"]))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
