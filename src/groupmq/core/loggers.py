"""Loggers as users give them, and the one that writes to the console."""

from __future__ import annotations

import logging
import sys
from typing import Any, TextIO

from groupmq.core.checks import Logger
from groupmq.core.errors import ConfigurationError

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


class _Stderr(logging.StreamHandler[TextIO]):
    """Writes to the current `sys.stderr`: programs and test runners replace it."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)
        self.setFormatter(logging.Formatter(_FORMAT))

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        return sys.stderr


def console() -> logging.Logger:
    """The logger of `logger=True`. It writes all levels to standard error and does not propagate."""
    logger = logging.getLogger("groupmq.console")
    if not logger.handlers:
        logger.setLevel(logging.DEBUG)
        logger.propagate = False
        logger.addHandler(_Stderr())
    return logger


def checked(value: object) -> Logger | None:
    """A logger as users give it: any object with the four methods, True for the console, None for the library's own."""
    if value is None:
        return None
    if value is True:
        return console()
    if not all(callable(getattr(value, level, None)) for level in LEVELS):
        raise ConfigurationError.expected("logger", "an object with debug, info, warning and error, or True", value)
    logger: Any = value
    return logger  # type: ignore[no-any-return]
