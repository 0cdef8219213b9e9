"""JSON as a tree of nodes, for a page that lets readers fold it. Numbers are text: a browser would round large ones."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

_MOST_NODES = 5000


@dataclass(slots=True)
class TreeNode:
    key: str | None
    kind: str
    """object, array, string, number, true, false or null."""
    text: str
    size: int = 0
    """Entries of an object or array; `items` may have fewer if the whole is very large."""
    items: list[TreeNode] = field(default_factory=list)


def json_tree(value: Any) -> TreeNode:
    """The tree of a value, with a few thousand nodes at most."""
    left = [_MOST_NODES]
    return _node(None, value, left)


def _node(key: str | None, value: Any, left: list[int]) -> TreeNode:
    left[0] -= 1
    if isinstance(value, dict):
        node = TreeNode(key, "object", "", len(value))
        pairs: list[tuple[str | None, Any]] = [(str(name), item) for name, item in value.items()]
    elif isinstance(value, list | tuple):
        node = TreeNode(key, "array", "", len(value))
        pairs = [(None, item) for item in value]
    else:
        return TreeNode(key, _kind(value), json.dumps(value, ensure_ascii=False))
    for name, item in pairs:
        if left[0] <= 0:
            break
        node.items.append(_node(name, item, left))
    return node


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "number" if isinstance(value, int | float) else "string"
