"""How functions of the Lua side are called: from a library that the server keeps, or each as a script of its own.

A library is loaded once and costs a call nothing; a script is set up anew by each call, which takes the server about
100 us. Some servers and users have no FUNCTION, so both ways are there, and the first call finds out.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Literal

from groupmq.client.connection.faults import is_no_function, is_no_script, is_out_of_memory, is_unavailable
from groupmq.protocol.functions import Script

Command = tuple[Any, ...]
Steps = Generator[Command, Any, Any]

_TRIES = 3
"""Somebody may flush the functions again while we load ours; after so many tries this call goes as a script."""


class Calling:
    """The way one client calls functions. Yields commands, is sent replies or thrown exceptions."""

    by: Literal["function", "script"] = "function"

    def call(self, script: Script, tail: Command) -> Steps:
        """`tail`: number of keys, key, arguments."""
        if self.by == "function":
            command = ("FCALL_RO" if script.reads else "FCALL", script.function, *tail)
            for _ in range(_TRIES):
                try:
                    return (yield command)
                except Exception as error:
                    if is_unavailable(error, "fcall"):
                        self.by = "script"
                        break
                    if not is_no_function(error):
                        raise
                loaded = yield from self._load(script)
                if not loaded:
                    break
        return (yield from _by_script(script, tail))

    def _load(self, script: Script) -> Steps:
        """Load the library; False if that cannot be done now, or ever."""
        try:
            yield ("FUNCTION", "LOAD", script.library.text)
        except Exception as error:
            if "already exists" in str(error):
                return True  # another client was faster; its text is ours, since the name has a hash of it
            if is_unavailable(error, "function"):
                self.by = "script"
                return False
            if is_out_of_memory(error):
                return False  # loading takes memory; what reports and drains must go on, and a script takes none
            raise
        return True


def _by_script(script: Script, tail: Command) -> Steps:
    ending = "_RO" if script.reads else ""
    try:
        return (yield (f"EVALSHA{ending}", script.sha, *tail))
    except Exception as error:
        if not is_no_script(error):
            raise
    return (yield (f"EVAL{ending}", script.text, *tail))
