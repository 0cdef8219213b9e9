"""The `groupmq` command. Needs the extra `cli`."""

from __future__ import annotations

import sys


def main() -> None:
    """The entry point of the command."""
    try:
        import click  # noqa: F401
        import rich  # noqa: F401
    except ImportError:
        sys.exit("groupmq: the command line needs click and rich: pip install 'groupmq[cli]'")
    from groupmq.cli.tree import run

    run()
