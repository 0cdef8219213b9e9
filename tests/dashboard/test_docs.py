"""The commands and options of docs/dashboard.md work as written. Its examples of host apps are in test_mounts.py."""

from __future__ import annotations

import re

import pytest

from groupmq.cli.dashboard import dashboard as command
from groupmq.dashboard.app import Dashboard
from groupmq.dashboard.paths import PATHS
from tests.dashboard import hosts

TEXT = hosts.DOCS.read_text()


async def test_the_example_of_all_options_makes_an_app(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "a-secret-key-of-more-than-32-characters")
    (block,) = [
        block for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL) if block not in hosts.examples().values()
    ]
    names = {"check": lambda request: "ada", "may": lambda user, action: True}
    exec(block, names)
    app: object = names["dashboard"]
    assert isinstance(app, Dashboard)
    assert app.shared.catalogue.display_name("orders") == "Orders"
    await app.close()


def test_every_option_of_the_command_exists() -> None:
    known = {option for parameter in command.params for option in parameter.opts}
    lines = [line for line in TEXT.splitlines() if "groupmq dashboard" in line]
    used = {
        option for line in lines for option in re.findall(r"(?<!\S)--[a-z-]+", line.partition("groupmq dashboard")[2])
    }
    assert used
    assert used <= known


def test_every_variable_of_the_environment_exists() -> None:
    known = {str(parameter.envvar) for parameter in command.params if parameter.envvar}
    said = re.search(r"Settings can also come from (.*?)\.\n", TEXT)
    assert said is not None
    assert {
        f"GROUPMQ_DASHBOARD_{name}" for name in re.findall(r"_([A-Z_]+)`", said[1].replace("GROUPMQ_DASHBOARD", ""))
    } <= known


def test_every_address_exists() -> None:
    """Each example address of the JSON API on the page is one of the API's paths."""
    shown = re.findall(r"localhost:8400(?:/api/v1)?(/queues/\S*?)(?:\?|\s)", TEXT)
    templates = [re.sub(r"\{\w+\}", "[^/]+", path) for path in PATHS.values()]
    assert shown
    for path in shown:
        assert any(re.fullmatch(template, path) for template in templates), path
