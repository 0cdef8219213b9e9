"""`groupmq completion`: prints the script with which a shell completes the command."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from groupmq.cli.options.shared import examples


@click.command(
    epilog=examples(
        'eval "$(groupmq completion bash)"        # in ~/.bashrc',
        'eval "$(groupmq completion zsh)"         # in ~/.zshrc',
        "groupmq completion fish > ~/.config/fish/completions/groupmq.fish",
    )
)
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion(shell: str) -> None:
    """Print the script that completes groupmq in a shell."""
    from groupmq.cli.tree import cli

    found = get_completion_class(shell)
    if found is not None:
        click.echo(found(cli, {}, "groupmq", "_GROUPMQ_COMPLETE").source())
