"""Names that a release still answers to, and the next one does not."""

from __future__ import annotations

import warnings


def renamed(owner: str, old: str, new: str) -> None:
    """Warn about the old name of an attribute. To be called by the property that still has it."""
    warnings.warn(f"{owner}.{old} is deprecated; use {owner}.{new}", DeprecationWarning, stacklevel=3)
