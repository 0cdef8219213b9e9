"""Plain commands to the server, for what is about the server itself and not about a queue's jobs."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from groupmq.connection import Endpoint
from groupmq.faults import understood


class Wire:
    """A connection of its own. Replies come as they are, errors as ours; nothing is tried again."""

    def __init__(self, url: str | None) -> None:
        endpoint = Endpoint(url)
        self.where = endpoint.where
        self._client: Any = endpoint.blocking()
        # The library's own reading of replies differs between its releases and protocols.
        self._client.response_callbacks.clear()

    def ask(self, *parts: Any) -> Any:
        try:
            return self._client.execute_command(*parts, NEVER_DECODE=True)
        except Exception as error:
            raise understood(error, self.where) from error

    def info(self) -> dict[str, str]:
        """INFO, all sections as one."""
        raw = self.ask("INFO")
        lines = (raw if isinstance(raw, bytes) else bytes(raw)).decode(errors="replace").splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line and not line.startswith("#"))

    def config(self, name: str) -> str | None:
        """One setting; None where CONFIG is not to be had (managed servers)."""
        try:
            reply = self.ask("CONFIG", "GET", name)
        except Exception:
            return None
        pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2], strict=False)
        return next((value.decode() for _, value in pairs), None)

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
