"""Permissions: read-only comes first, then the host app's own rule."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterable
from typing import Any

from groupmq.dashboard.options import Permissions

VIEW = "view"
_logger = logging.getLogger("groupmq.dashboard")


class Access:
    """Decides what a user may do. A rule that raises allows nothing."""

    def __init__(self, permissions: Permissions | None, actions: Iterable[str], *, read_only: bool) -> None:
        self._permissions = permissions
        self._actions = tuple(actions)
        self.read_only = read_only

    async def may_view(self, user: str) -> bool:
        return await self._ask(user, VIEW)

    async def allowed(self, user: str) -> frozenset[str]:
        """The actions that this user may take."""
        if self.read_only:
            return frozenset()
        return frozenset([action for action in self._actions if await self._ask(user, action)])

    async def _ask(self, user: str, action: str) -> bool:
        if self._permissions is None:
            return True
        try:
            answer: Any = self._permissions(user, action)
            if inspect.isawaitable(answer):
                answer = await answer
        except Exception as error:
            _logger.error("permissions raised %s for the action %s; it is refused", type(error).__name__, action)
            return False
        return answer is True
