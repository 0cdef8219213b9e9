"""The parts of documents: frozen records that msgspec can write as JSON and describe as a schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, dataclass_transform

if TYPE_CHECKING:
    T = TypeVar("T")

    @dataclass_transform(kw_only_default=True, frozen_default=True)
    def record(cls: type[T]) -> type[T]: ...
else:
    record = dataclass(frozen=True, slots=True, kw_only=True)
    """A frozen dataclass with keyword arguments only: a document has many fields, and their order says nothing."""
