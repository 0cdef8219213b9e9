"""Documents as HTML: the template of the document's name, or one block of it."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from groupmq.dashboard import paths
from groupmq.dashboard.errors import Refused
from groupmq.dashboard.filters import FILTERS
from groupmq.dashboard.json_tree import json_tree
from groupmq.dashboard.layout import Layout

HERE = Path(__file__).parent
STATIC = HERE / "static"


class Renderer:
    """Renders templates. Autoescape is always on: text from jobs must never be read as HTML."""

    def __init__(self) -> None:
        self._environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= FILTERS

    def render(self, name: str, block: str | None, context: dict[str, Any]) -> str:
        """Render the template of this name, or one of its own blocks. Blocks of the frame are not served as parts."""
        template = self._environment.get_template(f"{name}.html")
        if block is None:
            return template.render(context)
        if block not in template.blocks:
            raise Refused(404, "There is no such part", "This page has no part of that name.")
        return "".join(template.blocks[block](template.new_context(context)))


def context(
    document: Any, *, name: str, layout: Layout, csrf: str, read_only: bool, can: Any, here: str
) -> dict[str, Any]:
    """The variables of a template."""

    def path(name: str, **params: object) -> str:
        return paths.build(layout.base, name, params)

    def static(file: str) -> str:
        return paths.build(layout.base, "static", {"file": file, "v": version_of(file)})

    return {
        "page": document,
        "page_name": name,
        "layout": layout,
        "csrf": csrf,
        "read_only": read_only,
        "can": can,
        "here": here,
        "path": path,
        "url": path,
        "static": static,
        "asset": static,
        "json_tree": json_tree,
    }


@cache
def version_of(file: str) -> str | None:
    """Ten digits that change with the file, so that browsers may keep it for ever."""
    found = STATIC / file
    return hashlib.sha256(found.read_bytes()).hexdigest()[:10] if found.is_file() else None
