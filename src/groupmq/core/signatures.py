"""Options that are declared once, in a TypedDict, and shown by `help()` and `inspect.signature` of their callables."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def shows_options(declared: type, defaults: Mapping[str, Any]) -> Callable[[F], F]:
    """Show a function that takes `**options: Unpack[declared]` with one keyword argument for each of them.

    Their texts are at the end of its docstring, written by `tools/option_texts.py`.
    """

    def show(function: F) -> F:
        signature = inspect.signature(function)
        found = signature.parameters.values()
        first = [one for one in found if one.kind < inspect.Parameter.KEYWORD_ONLY]
        last = [one for one in found if one.kind is inspect.Parameter.KEYWORD_ONLY]
        # A TypedDict holds each annotation as the text that was written; the other parameters have texts as well.
        written = {name: getattr(hint, "__forward_arg__", hint) for name, hint in declared.__annotations__.items()}
        options = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=written[name])
            for name, default in defaults.items()
            if name not in signature.parameters
        ]
        function.__signature__ = signature.replace(parameters=[*first, *options, *last])  # type: ignore[attr-defined]
        return function

    return show


def unknown_option(function: str, given: Collection[str], known: Collection[str]) -> TypeError | None:
    """The error for the first name that is not an option, with the nearest one; None if all are known."""
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1) or [one for one in known if one.startswith(name)][:1]
            hint = f"; did you mean {near[0]!r}?" if near else ""
            return TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}")
    return None


def complete(function: str, given: Mapping[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """All arguments of a constructor. An unknown name raises a TypeError that suggests the nearest one."""
    unknown = unknown_option(function, given, defaults)
    if unknown is not None:
        raise unknown
    return {**defaults, **given}
