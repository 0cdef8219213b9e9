"""`groupmq monitor`: a queue, live. What was seen, how it is fetched, drawn and acted on are modules of their own."""

from groupmq.cli.monitor.command import monitor

__all__ = ["monitor"]
