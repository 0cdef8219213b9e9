"""Deprecated names, which the next release removes."""

from __future__ import annotations

import warnings


def renamed(owner: str, old: str, new: str) -> None:
    """Warn about the old name of an attribute. Called by the property of that name."""
    warnings.warn(f"{owner}.{old} is deprecated; use {owner}.{new}", DeprecationWarning, stacklevel=3)
