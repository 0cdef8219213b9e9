"""`groupmq demo` and `groupmq bench`."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import click

import groupmq
from groupmq.cli.exits import BAD_USAGE, NOT_FOUND, fail
from groupmq.cli.options.shared import examples
from groupmq.cli.output.answers import as_line


@click.command(
    short_help="Watch jobs run in order while a worker is killed.",
    epilog=examples("groupmq demo", "groupmq demo --json", "groupmq demo --dashboard"),
)
@click.option("--json", "as_json", is_flag=True, help="The proof in JSON; the show goes to stderr.")
@click.option("--dashboard", "in_browser", is_flag=True, help="Run a slow load and show it in the dashboard.")
@click.option("--port", type=click.IntRange(0, 65535), default=8400, show_default=True, help="Port of the dashboard.")
@click.pass_context
def demo(ctx: click.Context, as_json: bool, in_browser: bool, port: int) -> None:
    """Run 600 jobs in order while one of the workers is killed, and print the proof.

    Needs no server: it starts a private one (pip install 'groupmq[embedded]') and leaves nothing behind.
    With --dashboard the load is slower, continues until Ctrl-C, and can be watched in a browser.
    """
    if in_browser:
        from groupmq.demo.dashboard import run

        run(port)
        return
    from groupmq.demo.__main__ import main

    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        proof = asyncio.run(main())
    if as_json:
        click.echo(as_line(asdict(proof) | {"holds": proof.holds}))
    if not proof.holds:
        ctx.exit(NOT_FOUND)


@click.command(
    short_help="Measure throughput and latency (source checkout only).",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    epilog=examples("groupmq bench --quick", "groupmq bench --help"),
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS]")
@click.pass_context
def bench(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Measure throughput and latency, compared with the Node libraries if node is installed.

    Works from a source checkout only.
    """
    root = checkout()
    if root is None:
        fail(
            "bench runs from a source checkout only; this is an installed package (in a checkout: make bench)",
            BAD_USAGE,
        )
    ctx.exit(subprocess.run([sys.executable, "-m", "bench", *words], cwd=root).returncode)


def checkout(package: Path | None = None) -> Path | None:
    """The source checkout that this package runs from; None if it is installed."""
    root = (package or Path(groupmq.__file__)).resolve().parents[2]
    return root if (root / "bench" / "__main__.py").is_file() and (root / "pyproject.toml").is_file() else None
