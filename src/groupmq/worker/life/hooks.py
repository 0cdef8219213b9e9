"""The hooks that a worker awaits before its first job and after its last: `on_startup` and `on_shutdown`."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

from groupmq.core.checks import takes
from groupmq.core.worker_options import WorkerOptions


class StartupRaised(Exception):
    """`on_startup` raised this error: unlike those of the server it is never tried again."""

    def __init__(self, error: Exception) -> None:
        super().__init__(repr(error))
        self.error = error


class Hooks:
    """Calls each hook once, and `on_shutdown` only if `on_startup` has succeeded."""

    def __init__(self, options: WorkerOptions, worker: str) -> None:
        self._on_startup = options.on_startup
        self._on_shutdown = options.on_shutdown
        self._logger = options.logger
        self._worker = worker
        self._context: Any = None
        self._is_up = False

    async def start_up(self) -> Any:
        """Call `on_startup` and return the context of the jobs."""
        if self._on_startup is not None:
            try:
                context = self._on_startup()
                self._context = await context if inspect.isawaitable(context) else context
            except Exception as error:
                raise StartupRaised(error) from error
        self._is_up = True
        return self._context

    async def shut_down(self, limit: float) -> None:
        """Call `on_shutdown`. Its error is logged, not raised: the worker is closed, so no caller could act on it."""
        hook, context = self._on_shutdown, self._context
        if hook is None or not self._is_up:
            return
        self._is_up, self._context = False, None
        try:
            async with asyncio.timeout(limit):
                outcome = hook(context) if takes(hook, 1) else hook()
                if inspect.isawaitable(outcome):
                    await outcome
        except TimeoutError:
            self._logger.error(
                "worker %s: on_shutdown did not end within %.1f s; the worker closes without it", self._worker, limit
            )
        except Exception as error:
            self._logger.error(
                "worker %s: on_shutdown raised %s: %s; the worker closes anyway",
                self._worker,
                type(error).__name__,
                error,
            )
