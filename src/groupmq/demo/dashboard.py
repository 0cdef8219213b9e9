"""`groupmq demo --dashboard`: live queues on a private server, and the dashboard that shows them."""

from __future__ import annotations

import asyncio
import logging

from groupmq.cli.dashboard import address, listen, load, make_server
from groupmq.demo.show import running

DISPLAY_NAMES = {"orders": "Orders", "emails": "E-mails", "reports": "Reports"}
DESCRIPTIONS = {
    "orders": "Charges and invoices, one customer at a time",
    "emails": "Receipts, one domain at a time",
    "reports": "Month ends; no worker runs them at the moment",
}
REDIS = "embedded://"


async def main(port: int = 8400, pace: float = 1.0) -> None:
    """Serve until Ctrl-C."""
    module = load()
    # The demo fails jobs on purpose: the page shows that, and the terminal need not.
    logging.getLogger("groupmq").setLevel(logging.CRITICAL)
    listening = listen("127.0.0.1", port)
    async with running(REDIS, pace=pace):
        app = module.create_app(redis=REDIS, display_names=DISPLAY_NAMES, descriptions=DESCRIPTIONS)
        print(f"groupmq demo: three queues with jobs that run, wait, fail and repeat.\n\n  {address(listening)}\n")
        print("Ctrl-C ends it; nothing is left behind.", flush=True)
        await make_server(app).serve(sockets=[listening])


def run(port: int = 8400) -> None:
    asyncio.run(main(port))
