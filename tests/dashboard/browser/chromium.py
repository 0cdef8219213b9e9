"""Finds the browser. Without one these tests are skipped with a message; in CI they fail."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PLACES = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
LEFT_OUT = (
    "left out: every test of the dashboard in a browser (pages, actions, live updates, keyboard, phone, dark, hostile "
    "data, accessibility), because chromium is not installed (Debian: apt-get install chromium)"
)


def find() -> str | None:
    """The path of a chromium, or the one in GROUPMQ_CHROMIUM; None if there is none."""
    given = os.environ.get("GROUPMQ_CHROMIUM")
    if given:
        return given if Path(given).is_file() else None
    return next((place for place in PLACES if Path(place).is_file()), None) or shutil.which("chromium")


def require() -> str:
    """The path of the browser. Without one it skips the test, or fails it in CI."""
    found = find()
    if found is not None:
        return found
    if os.environ.get("CI"):
        pytest.fail(LEFT_OUT.replace("left out: every", "CI must run every"))
    pytest.skip(LEFT_OUT)
