"""Options of the commands that run until they are stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from groupmq.cli.options.values import DurationType
from groupmq.cli.output import logs

PORT = click.IntRange(0, 65535)
HERE = "127.0.0.1"
"""The default address of the ports: pages without a password must not be open to the whole network."""
BIND_VARIABLE = "GROUPMQ_BIND"


def running_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of every command that runs until it is stopped."""
    for option in (
        click.option("--log-format", type=click.Choice(logs.FORMATS), help="Log lines as text (default) or JSON."),
        click.option("--log-level", type=click.Choice(logs.LEVELS), default="info", show_default=True),
        click.option(
            "--bind",
            envvar=BIND_VARIABLE,
            default=HERE,
            show_default=True,
            metavar="ADDRESS",
            help="Address of the ports; 0.0.0.0 = all interfaces.",
        ),
        click.option("--health-port", type=PORT, help="Serve /livez and /readyz on this port."),
        click.option(
            "--unreachable-timeout",
            type=DurationType(0.1),
            metavar="TIME",
            help="Exit with code 3 if the server is out of reach this long. [default: 3 at start, never later]",
        ),
    ):
        command = option(command)
    return command
