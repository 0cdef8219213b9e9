"""Checks of arguments that users pass: each returns the value, or raises an error that names the argument."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol

from groupmq.core.errors import ConfigurationError

MAX_ID_BYTES = 4096


def whole(value: object, argument: str, lowest: int, highest: int) -> int:
    """An integer in a range. A bool or a float is refused."""
    if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
        raise ConfigurationError.expected(argument, f"an integer from {lowest} to {highest}", value)
    return value


def text(value: object, argument: str) -> str:
    """A non-empty string that fits in a key or field."""
    if not isinstance(value, str) or not value:
        raise ConfigurationError.expected(argument, "a non-empty string", value)
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise ConfigurationError.expected(argument, "text without lone surrogates", value) from None
    if size > MAX_ID_BYTES:
        raise ConfigurationError.expected(argument, f"at most {MAX_ID_BYTES} bytes of UTF-8", value)
    return value


def one_of(value: object, argument: str, *allowed: str) -> str:
    if value not in allowed:
        raise ConfigurationError.expected(argument, " or ".join(map(repr, allowed)), value)
    return str(value)


def flag(value: object, argument: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigurationError.expected(argument, "True or False", value)
    return value


def takes(function: Callable[..., Any], arguments: int) -> bool:
    """Whether a callable can be called with this many positional arguments. One without a signature is assumed to
    accept them."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True  # some builtins have none
    try:
        signature.bind(*range(arguments))
    except TypeError:
        return False
    return True


def with_signature(function: Callable[..., Any]) -> str:
    """A callable as an error message names it: its name and the arguments it takes."""
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    signature = inspect.signature(function)
    return f"{name}{signature.replace(return_annotation=inspect.Signature.empty)}"


class Logger(Protocol):
    """The methods that groupmq needs of a logger; `logging.Logger` and most others have them."""

    def debug(self, msg: str, *args: Any) -> Any: ...
    def info(self, msg: str, *args: Any) -> Any: ...
    def warning(self, msg: str, *args: Any) -> Any: ...
    def error(self, msg: str, *args: Any) -> Any: ...
