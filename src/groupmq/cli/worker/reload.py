"""Watching source files: `--reload` restarts workers when one changes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

EVERY = 0.4
_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages", "venv", "env", "build", "dist"})
Stamps = dict[str, tuple[int, int]]


class Watch:
    """The Python files under a folder, hidden folders and installed packages left out."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen = self._stamps()

    def changed(self) -> list[str]:
        """Files that were written, added or removed since the last call."""
        before, self._seen = self._seen, self._stamps()
        return sorted({path for path, _ in before.items() ^ self._seen.items()})

    def _stamps(self) -> Stamps:
        found: Stamps = {}
        for folder, folders, files in os.walk(self._folder):
            folders[:] = [name for name in folders if not name.startswith(".") and name not in _SKIPPED]
            for name in files:
                if name.endswith(".py"):
                    path = os.path.join(folder, name)
                    try:
                        stat = os.stat(path)
                    except OSError:
                        continue
                    found[path] = (stat.st_mtime_ns, stat.st_size)
        return found

    async def changes(self) -> AsyncIterator[list[str]]:
        while True:
            await asyncio.sleep(EVERY)
            if changed := await asyncio.to_thread(self.changed):
                yield changed
