"""A real terminal: a shell in tmux, in which tests type and read."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from tests.support.waiting import wait_until

PATIENCE = 30.0
needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed (apt-get install tmux)")


class Screen:
    """A terminal in tmux, 80x24 at first.

    >>> with Screen(tmp_path, env) as screen:
    ...     screen.run("groupmq monitor")
    ...     screen.shows("running")
    """

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.folder = folder
        self._socket = folder / "tmux.sock"
        self._env = env

    def tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-u", "-S", str(self._socket), "-f", "/dev/null", *words],
            env=self._env | {"LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def __enter__(self) -> Self:
        # The user's shell settings, such as prompts, must not affect the test.
        self.tmux("new-session", "-d", "-x", "80", "-y", "24", "env PS1='$ ' bash --norc --noprofile -i")
        try:
            self.shows(r"^\$ ?$")
        except BaseException:
            self.tmux("kill-server")
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.tmux("kill-server")

    def run(self, command: str) -> None:
        """Run a command line in the shell. The state of the terminal before and after it, and its exit code, go to
        files."""
        script = f"stty -g > before\n{command}\necho $? > code\nstty -g > after\n"
        (self.folder / "run.sh").write_text(script)
        self.type(f"cd {shlex.quote(str(self.folder))} && clear && . ./run.sh", "Enter")

    def type(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    @property
    def text(self) -> str:
        return self.tmux("capture-pane", "-p")

    @property
    def rows(self) -> list[str]:
        return self.text.split("\n")

    def shows(self, pattern: str, timeout: float = PATIENCE) -> re.Match[str]:
        """Wait until the text on the screen matches a pattern."""
        try:
            wait_until(lambda: re.search(pattern, self.text, re.MULTILINE), f"shows {pattern!r}", timeout)
        except AssertionError as error:
            raise AssertionError(f"{error}; the screen has:\n{self.text}") from None
        found = re.search(pattern, self.text, re.MULTILINE)
        return found if found else self.shows(pattern, timeout)

    def resize(self, width: int, height: int) -> None:
        self.tmux("resize-window", "-x", str(width), "-y", str(height))

    def told(self, variable: str) -> str:
        """The value of a tmux variable of the terminal."""
        return self.tmux("display-message", "-p", f"#{{{variable}}}").strip()

    def is_restored(self) -> int:
        """Wait until the command has ended, and check that it restored the terminal. Returns the exit code."""
        file = self.folder / "after"
        wait_until(
            lambda: file.exists() and file.read_text(), f"the command ends; the screen has:\n{self.text}", PATIENCE
        )
        assert file.read_text() == (self.folder / "before").read_text()
        assert (self.told("alternate_on"), self.told("cursor_flag"), self.told("wrap_flag")) == ("0", "1", "1")
        return int((self.folder / "code").read_text())
