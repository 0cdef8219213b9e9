"""`groupmq exporter`: the metrics of queues, for Prometheus, without a worker."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Sequence
from typing import Any

import click

from groupmq.cli.exits import BAD_USAGE, fail
from groupmq.cli.options.running import BIND_VARIABLE, HERE
from groupmq.cli.output.http_pages import HttpPage, Make, serve
from groupmq.cli.output.logs import FORMATS, LEVELS, set_up
from groupmq.sync import Queue

_logger = logging.getLogger("groupmq.cli")
_TIMEOUT = 2.0
"""Seconds that reading a queue waits for an answer: a scrape has ten in all."""


def metrics_page(registry: Any) -> dict[str, Make]:
    """The page for Prometheus."""
    from prometheus_client import generate_latest
    from prometheus_client.exposition import CONTENT_TYPE_LATEST

    def page() -> HttpPage:
        return 200, CONTENT_TYPE_LATEST, generate_latest(registry)

    return {"/metrics": page}


def new_registry() -> Any:
    """A registry of our own; fails with one line if a package is missing."""
    try:
        from prometheus_client import CollectorRegistry

        return CollectorRegistry()
    except ImportError:
        fail("metrics need prometheus-client: pip install 'groupmq[prometheus]'", BAD_USAGE)


def queue_collector(names: Sequence[str], redis: Any, prefix: str) -> tuple[Any, Callable[[], None]]:
    """A collector that makes no queue, and a function that closes it. `redis` as `Queue.attach` takes it."""
    from groupmq.metrics import QueueCollector

    queues = [Queue.attach(name, redis, call_timeout=_TIMEOUT, prefix=prefix) for name in names]

    def close() -> None:
        for queue in queues:
            queue.close()

    return QueueCollector(*queues), close


@click.command()
@click.option("--redis-url", envvar=["GROUPMQ_URL", "REDIS_URL"], metavar="URL", help="Server to use.")
@click.option(
    "--queue",
    "--namespace",
    "-q",
    "queues",
    envvar="GROUPMQ_QUEUE",
    multiple=True,
    metavar="NAME",
    help="Queue to look at; may be repeated.",
)
@click.option("--prefix", default="groupmq", show_default=True, help="Prefix of the queues' keys.")
@click.option("--json", "as_json", is_flag=True, help="Log lines as JSON.")
@click.option("--port", type=click.IntRange(0, 65535), default=9464, show_default=True, help="Port to serve on.")
@click.option(
    "--bind",
    envvar=BIND_VARIABLE,
    default=HERE,
    show_default=True,
    metavar="ADDRESS",
    help="Address to serve on; 0.0.0.0 = all interfaces.",
)
@click.option("--log-level", type=click.Choice(LEVELS), default="info", show_default=True)
@click.option("--log-format", type=click.Choice(FORMATS), help="Log lines as text (default) or JSON.")
def exporter(
    redis_url: str | None,
    queues: tuple[str, ...],
    prefix: str,
    as_json: bool,
    port: int,
    bind: str,
    log_level: str,
    log_format: str | None,
) -> None:
    """Serve metrics of queues to Prometheus.

    Reads the queues only when it is scraped. While a server is down, it keeps running and serves groupmq_up 0.
    """
    if not queues:
        fail("which queue? Name it with --queue, or set GROUPMQ_QUEUE", BAD_USAGE)
    registry = new_registry()
    set_up(log_level, log_format or ("json" if as_json else "text"))
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    collector, close = queue_collector(list(dict.fromkeys(queues)), redis_url, prefix)
    registry.register(collector)
    pages = metrics_page(registry)
    pages["/livez"] = pages["/healthz"] = pages["/readyz"] = lambda: (200, "text/plain", b"ok\n")
    served = serve(bind, {"metrics": port}, {"metrics": pages})
    over.wait()
    for one in served:
        one.close()
    close()
