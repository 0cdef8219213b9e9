"""The files of the pages: pinned third-party files, a small total size, nothing that the policy forbids."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from groupmq import dashboard
from tools import vendor_assets

HOME = Path(dashboard.__file__).parent
TEMPLATES = sorted((HOME / "templates").glob("*.html"))
SCRIPTS = sorted((HOME / "static").glob("*.js"))


def test_third_party_files_are_as_their_packages_have_them() -> None:
    assert vendor_assets.faults() == []


def test_all_assets_together_are_under_150_kb_gzipped() -> None:
    sizes = vendor_assets.sizes()
    assert sum(sizes.values()) < vendor_assets.BUDGET, sizes


def test_every_third_party_file_has_its_licence_beside_it() -> None:
    for package in vendor_assets.PACKAGES:
        assert any("LICENSE" in asset.name for asset in package.assets), package.name


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_templates_have_no_inline_script_style_or_handler(template: Path) -> None:
    text = template.read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)", text), "a script without src"
    assert not re.search(r"<style\b|\sstyle=", text), "an inline style"
    assert not re.search(r"\son[a-z]+\s*=|hx-on|javascript:|\bjs:", text), "an inline handler"
    assert "|safe" not in text.replace(" ", ""), "a text that is not escaped"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_make_no_html_of_text(script: Path) -> None:
    text = script.read_text()
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text)


@pytest.mark.parametrize("file", [*TEMPLATES, *SCRIPTS, HOME / "static" / "app.css"], ids=lambda path: path.name)
def test_nothing_is_loaded_from_elsewhere(file: Path) -> None:
    found = re.findall(r"(?:src|href|url\()\s*=?\s*[\"']?(https?:)?//", file.read_text())
    assert found == []
