"""What a method returns when it is called: in this client something to await."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
Reply = Coroutine[Any, Any, T]
