"""The command tree. Each group of commands is a module, which is loaded when it is called."""

from __future__ import annotations

import importlib
from typing import Any

import click

from groupmq import __version__
from groupmq.cli.exits import BAD_USAGE, fail, guarded
from groupmq.cli.output.answers import quiet_pipe, tolerant_streams

# name -> module, attribute, heading in the help
COMMANDS = {
    "worker": ("groupmq.cli.worker.command", "worker", "Run"),
    "scheduler": ("groupmq.cli.duties", "scheduler", "Run"),
    "recovery": ("groupmq.cli.duties", "recovery", "Run"),
    "server": ("groupmq.cli.server", "server", "Run"),
    "dashboard": ("groupmq.cli.dashboard", "dashboard", "Look"),
    "monitor": ("groupmq.cli.monitor.command", "monitor", "Look"),
    "check": ("groupmq.cli.check", "check", "Look"),
    "exporter": ("groupmq.cli.exporter", "exporter", "Look"),
    "job": ("groupmq.cli.job.command", "job", "Change"),
    "queue": ("groupmq.cli.queue.command", "queue", "Change"),
    "repeat": ("groupmq.cli.repeat", "repeat", "Change"),
    "mark": ("groupmq.cli.mark", "mark", "Change"),
    "demo": ("groupmq.cli.extras", "demo", "Try"),
    "bench": ("groupmq.cli.extras", "bench", "Try"),
    "completion": ("groupmq.cli.completion", "completion", "Try"),
}
SPELLINGS = {
    "job:add": ("job", "add"),
    "job:status": ("job", "status"),
    "job:retry": ("job", "retry"),
    "job:fail": ("job", "fail"),
    "queue:stats": ("queue", "stats"),
    "queue:purge": ("queue", "purge"),
}


class Tree(click.Group):
    """Commands by heading, and the older spellings with a colon."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in SPELLINGS:
            group, name = SPELLINGS[cmd_name]
            parent = self.get_command(ctx, group)
            return parent.get_command(ctx, name) if isinstance(parent, click.Group) else None
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        try:
            command: click.Command = getattr(importlib.import_module(module), attribute)
        except ImportError as error:
            # Not in this release, or an extra is missing: the other commands and the help must still work.
            return _missing(cmd_name, error)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        headings: dict[str, list[tuple[str, str]]] = {}
        for name, (_, _, heading) in COMMANDS.items():
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                headings.setdefault(heading, []).append((name, command.get_short_help_str(70)))
        for heading, rows in headings.items():
            with formatter.section(heading):
                formatter.write_dl(rows)

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the program. Every error, a mistyped option too, becomes one line on stderr and an exit code."""
        tolerant_streams()
        guarded(lambda: super(Tree, self).main(*args, **(extra | {"standalone_mode": False})))

    def invoke(self, ctx: click.Context) -> Any:
        with quiet_pipe():
            return super().invoke(ctx)


def _missing(name: str, error: ImportError) -> click.Command:
    """The stand-in for a command that cannot be loaded: hidden in the help, one clear line when it is called."""

    def refuse(words: tuple[str, ...]) -> None:
        fail(f"{name} is not available in this installation: {error}", BAD_USAGE)

    rest = click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)
    settings = {"ignore_unknown_options": True}
    return click.Command(name, callback=refuse, params=[rest], hidden=True, context_settings=settings)


@click.group(cls=Tree, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="groupmq")
def cli() -> None:
    """groupmq: a job queue on Redis and Valkey.

    Jobs of one group run in order, one at a time; groups run in parallel.

    \b
    groupmq worker app.tasks:handle --queue orders -c 8
    groupmq job add orders --payload '{"amount": 999}' --group user:42
    groupmq queue stats orders
    groupmq check orders

    The server is --redis-url, else $GROUPMQ_URL, else $REDIS_URL, else redis://127.0.0.1:6379; the queue is --queue,
    else $GROUPMQ_QUEUE. Exit codes: 0 done, 1 not found or wrong state, 2 bad usage, 3 server unreachable.
    """


def run(args: list[str] | None = None) -> Any:
    """Run the command."""
    cli.main(args=args, prog_name="groupmq")
