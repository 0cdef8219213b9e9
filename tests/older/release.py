"""An older release of groupmq, kept as it was: its engine, Python and Lua, without its applications.

`format-3.tar.xz` is `src/groupmq` of the last commit that wrote format 3. When the number of the format changes again,
keep the last commit before that in the same way, and let FORMAT name it:

    git archive COMMIT src/groupmq, unpacked; then, in its src:
    tar --exclude=dashboard --exclude=cli --exclude=metrics --exclude=demo --exclude=contrib -cf - groupmq \
         | xz -9e > format-N.tar.xz
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

from tests.support.waiting import wait_until

FORMAT = "3"
HERE = Path(__file__).parent
_NUMBERS = {"protocol/call.py": 'SCHEMA = "{}"', "protocol/lua/lib/keys.lua": "local SCHEMA = '{}'"}


class OlderRelease:
    """The unpacked package, and processes that use it."""

    def __init__(self, folder: Path) -> None:
        with tarfile.open(HERE / f"format-{FORMAT}.tar.xz") as archive:
            archive.extractall(folder, filter="data")
        self.folder = folder

    def pass_for(self, number: str) -> None:
        """Let it say another format. What it does stays as it was: so a release that changed no format would be."""
        for name, line in _NUMBERS.items():
            file = self.folder / "groupmq" / name
            text = file.read_text("utf-8")
            assert line.format(FORMAT) in text
            text = text.replace(line.format(FORMAT), line.format(number))
            text = text.replace(f'"{FORMAT} in partitions"', f'"{number} in partitions"')
            file.write_text(text.replace(f'"{FORMAT} moving"', f'"{number} moving"'), "utf-8")

    def start(self, what: str, url: str, queue: str, *rest: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(HERE / "process.py"), what, url, queue, *rest]
        environment = os.environ | {"PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        with (self.folder / "output").open("a") as output:
            return subprocess.Popen(
                command, env=environment, stdin=subprocess.PIPE, stdout=output, stderr=output, text=True
            )

    def run(self, what: str, url: str, queue: str, *rest: str) -> list[dict[str, Any]]:
        """What a process says that ends by itself."""
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
        """Wait until it has said something with this word in it."""
        wait_until(lambda: sum(word in json.dumps(one) for one in self.said()) >= times, f"it says {word}", 30)
