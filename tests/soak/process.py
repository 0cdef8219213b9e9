"""One process of a soak run: `python -m tests.soak.process JSON`. It exits when its standard input is closed."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import threading


def end_with_parent() -> None:
    os.read(0, 1)  # not sys.stdin, whose lock would be held while the interpreter exits
    os._exit(13)


def main() -> None:
    settings = json.loads(sys.argv[1])
    threading.Thread(target=end_with_parent, daemon=True).start()
    logging.getLogger("groupmq").setLevel(logging.CRITICAL)  # failures, stalls and refusals are part of the load
    if settings["role"] == "worker":
        from tests.soak import working

        asyncio.run(working.work(settings))
    else:
        from tests.soak import producing

        asyncio.run(producing.produce(settings))


if __name__ == "__main__":
    main()
