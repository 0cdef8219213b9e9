"""Figures that only the process itself knows, written to a small status file at intervals, for the sampler."""

from __future__ import annotations

import asyncio
import gc
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Self


class Pulse:
    """Writes the number of asyncio tasks and of Python objects, and the figures that `more` returns."""

    def __init__(self, settings: dict[str, Any], more: Callable[[], Awaitable[dict[str, Any]]] | None = None) -> None:
        self._path = Path(settings["status"])
        self._every = settings["every"]
        self._more = more
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.ensure_future(self._beat())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _beat(self) -> None:
        while True:
            known = {"tasks": len(asyncio.all_tasks()), "objects": len(gc.get_objects())}
            if self._more is not None:
                known |= await self._more()
            written = self._path.with_suffix(".new")
            written.write_text(json.dumps(known), encoding="utf-8")
            os.replace(written, self._path)  # atomic: nobody reads a partial file
            await asyncio.sleep(self._every)
