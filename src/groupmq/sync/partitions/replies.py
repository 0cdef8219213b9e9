"""What a method returns when it is called: in this client the answer."""

from __future__ import annotations

from typing import Annotated, TypeVar

T = TypeVar("T")
Reply = Annotated[T, "the answer itself"]
