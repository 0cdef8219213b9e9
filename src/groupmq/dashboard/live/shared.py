"""Answers that several readers share: ten tabs that ask for the same answer within a second cost one read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

_MOST = 500


class SharedAnswers:
    """Answers by key, each reused for a short time. A request for an answer that is being made waits for it."""

    def __init__(self, good_for: float = 1.0) -> None:
        self._good_for = good_for
        self._made: dict[Hashable, tuple[float, Any]] = {}
        self._making: dict[Hashable, asyncio.Future[Any]] = {}

    async def get(self, key: Hashable, make: Callable[[], Awaitable[Any]], *, fresh: bool = False) -> Any:
        """The answer; with `fresh` a new one, which the others then share."""
        made, making = self._made, self._making
        found = made.get(key)
        if not fresh and found is not None and time.monotonic() - found[0] < self._good_for:
            return found[1]
        if key in making:
            return await asyncio.shield(making[key])
        task = making[key] = asyncio.ensure_future(make())
        try:
            answer = await asyncio.shield(task)
        finally:
            making.pop(key, None)
        self._keep(made, key, answer)
        return answer

    def _keep(self, made: dict[Hashable, tuple[float, Any]], key: Hashable, answer: Any) -> None:
        """Keep an answer in the dict that was current when it was begun: `forget` may have replaced that dict since."""
        now = time.monotonic()
        if len(made) >= _MOST:
            for old in [k for k, one in made.items() if now - one[0] >= self._good_for]:
                del made[old]
        if len(made) < _MOST:
            made[key] = (now, answer)

    def forget(self) -> None:
        """Forget all answers, and those being made: something has changed, and the next request must see it."""
        self._made, self._making = {}, {}
