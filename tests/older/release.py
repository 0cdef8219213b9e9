"""An older release of groupmq, kept as it was: its engine, Python and Lua, without its applications.

`format-4.tar.xz` is `src/groupmq` of the last commit that wrote format 4. When the number of the format changes again,
keep the last commit before that in the same way, and let FORMAT name it:

    git archive COMMIT src/groupmq, unpacked; then, in its src:
    tar --exclude=dashboard --exclude=cli --exclude=metrics --exclude=demo --exclude=contrib -cf - groupmq \
         | xz -9e > format-N.tar.xz
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import groupmq
from tests.support.waiting import wait_until

FORMAT = "4"
HERE = Path(__file__).parent
THIS = Path(groupmq.__file__).parent
APPLICATIONS = ("dashboard", "cli", "metrics", "demo", "contrib", "__pycache__")


class OlderRelease:
    """The unpacked package, and processes that use it."""

    def __init__(self, folder: Path, *, same_format: bool = False) -> None:
        """`same_format`: a release that changed no format. There is no such commit yet, so it is this one with another
        text."""
        self.folder = folder
        if not same_format:
            with tarfile.open(HERE / f"format-{FORMAT}.tar.xz") as archive:
                archive.extractall(folder, filter="data")
            return
        shutil.copytree(THIS, folder / "groupmq", ignore=shutil.ignore_patterns(*APPLICATIONS))
        with (folder / "groupmq/protocol/lua/lib/bytes.lua").open("a", encoding="utf-8") as file:
            file.write("bytes.of_another_release = true\n")

    def start(self, what: str, url: str, queue: str, *rest: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(HERE / "process.py"), what, url, queue, *rest]
        environment = os.environ | {"PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        with (self.folder / "output").open("a") as output:
            return subprocess.Popen(
                command, env=environment, stdin=subprocess.PIPE, stdout=output, stderr=output, text=True
            )

    def run(self, what: str, url: str, queue: str, *rest: str) -> list[dict[str, Any]]:
        """Run a process to its end and return its output."""
        before = len(self.said())
        process = self.start(what, url, queue, *rest)
        process.communicate(timeout=60)
        assert process.returncode == 0, self.output
        return self.said()[before:]

    @property
    def output(self) -> str:
        file = self.folder / "output"
        return file.read_text("utf-8") if file.exists() else ""

    def said(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.output.splitlines() if line.startswith("{")]

    def until(self, word: str, times: int = 1) -> None:
        """Wait until the processes have printed a line that contains this word, or that many of them."""
        wait_until(lambda: sum(word in json.dumps(one) for one in self.said()) >= times, f"{word!r} is printed", 30)
