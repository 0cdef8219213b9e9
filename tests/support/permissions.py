"""The access rules of docs/security.md, as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
RULES = {
    block.split()[2]: block.split()[3:]
    for block in re.findall(r"^```\n(ACL SETUSER .*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
}
"""The rules of each user by its name."""
