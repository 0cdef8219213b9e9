"""How the program ends: exit codes, and one line on stderr instead of a traceback."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn

import click

from groupmq import ConfigurationError, ConnectionLost, GroupFull, GroupMQError, ServerRefused
from groupmq.embedded import EmbeddedServerError

DONE, NOT_FOUND, BAD_USAGE, UNREACHABLE = 0, 1, 2, 3
"""Exit codes."""
FAILED = 1
"""Exit code of a worker that could not start, or kept crashing."""
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells report it."""


class StartFailed(GroupMQError):
    """The program cannot start, although its command line is correct."""


def fail(message: str, code: int) -> NoReturn:
    """Print one clear line on stderr, and exit with this code."""
    click.echo(f"groupmq: {' '.join(message.split())}", err=True)
    sys.exit(code)


def code_of(error: GroupMQError) -> int:
    """The exit code of an error that ends a long-running command."""
    if isinstance(error, ConfigurationError):
        return BAD_USAGE
    return UNREACHABLE if isinstance(error, ConnectionLost | ServerRefused | EmbeddedServerError) else FAILED


def guarded(action: Callable[[], Any]) -> None:
    """Run the program. Every error that an operator can meet becomes one line and a code, never a traceback."""
    try:
        code = action()
    except click.UsageError as error:
        _wrong_usage(error)
    except click.ClickException as error:
        fail(error.format_message(), BAD_USAGE)
    except (click.Abort, KeyboardInterrupt):
        fail("interrupted", INTERRUPTED)
    except ConfigurationError as error:
        fail(str(error), BAD_USAGE)
    except (ConnectionLost, ServerRefused, EmbeddedServerError) as error:
        fail(str(error), UNREACHABLE)
    except GroupFull as error:
        fail(f"group {error.group_id!r} is full (max_group_size); nothing was added", NOT_FOUND)
    except GroupMQError as error:
        fail(str(error), NOT_FOUND)
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}" if error.filename else str(error), NOT_FOUND)
    # `ctx.exit(code)` of click returns its code here; other return values of commands are ignored.
    sys.exit(code if isinstance(code, int) else DONE)


def _wrong_usage(error: click.UsageError) -> NoReturn:
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        sys.exit(BAD_USAGE)
    path = error.ctx.command_path if error.ctx else "groupmq"
    fail(f"{error.format_message()} See {path} --help", BAD_USAGE)
