"""Loading of the Lua scripts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

from groupmq import commands, scripts

LUA = Path(str(resources.files("groupmq"))) / "lua"


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of scripts in place of ours."""
    (tmp_path / "lua" / "lib").mkdir(parents=True)
    monkeypatch.setattr(resources, "files", lambda _package: tmp_path)
    scripts.load.cache_clear()
    return tmp_path / "lua"


@pytest.fixture(autouse=True)
def _fresh_cache() -> Iterator[None]:
    """Whatever a test loaded from elsewhere is forgotten."""
    yield
    scripts.load.cache_clear()


def test_every_script_file_can_be_called_by_its_name() -> None:
    assert scripts.names() == sorted(path.stem for path in LUA.glob("*.lua"))


def test_every_command_names_a_script_that_exists_and_every_script_has_a_command() -> None:
    source = "".join(path.read_text("utf-8") for path in Path(commands.__file__).parent.glob("*.py"))
    assert set(re.findall(r'Call\(\s*"(\w+)"', source)) == set(scripts.names())


def expanded(file: str) -> list[tuple[int, str]]:
    """The lines of a file as they must be sent, each with its number."""
    source = list(enumerate((LUA / file).read_text("utf-8").splitlines(), start=1))
    private = any(line == "--- @private" for _, line in source)
    lines = [(n, "do" if line == "--- @private" else line) for n, line in source if not line.startswith("--- @include")]
    return lines + [(len(source), "end")] * private


@pytest.mark.parametrize("name", scripts.names())
def test_each_line_of_each_file_is_included_once_and_in_order(name: str) -> None:
    script = scripts.load(name)
    lines = script.text.splitlines()
    assert len(lines) == len(script.origins)
    by_file: dict[str, list[tuple[int, str]]] = {}
    for line, (file, number) in zip(lines, script.origins, strict=True):
        by_file.setdefault(file, []).append((number, line))
    assert f"{name}.lua" in by_file
    for file, found in by_file.items():
        assert found == expanded(file), file


@pytest.mark.parametrize("name", scripts.names())
def test_the_sha_is_that_of_the_text_that_is_sent(name: str) -> None:
    script = scripts.load(name)
    assert script.sha == hashlib.sha1(script.text.encode(), usedforsecurity=False).hexdigest()
    assert scripts.expand(name) == script.text


def test_a_shared_include_comes_once_before_its_first_use(library: Path) -> None:
    (library / "main.lua").write_text('--- @include "lib/a"\n--- @include "lib/b"\nreturn a + b\n')
    (library / "lib" / "a.lua").write_text('--- @include "lib/base"\nlocal a = base\n')
    (library / "lib" / "b.lua").write_text('--- @include "lib/base"\nlocal b = base\n')
    (library / "lib" / "base.lua").write_text("local base = 1\n")
    assert scripts.expand("main") == "local base = 1\nlocal a = base\nlocal b = base\nreturn a + b\n"


def test_what_is_private_to_a_file_is_a_block_of_its_own(library: Path) -> None:
    (library / "main.lua").write_text('--- @include "lib/a"\nreturn a()\n')
    (library / "lib" / "a.lua").write_text(
        "local a\n--- @private\nlocal hidden = 1\na = function() return hidden end\n"
    )
    assert scripts.expand("main") == (
        "local a\ndo\nlocal hidden = 1\na = function() return hidden end\nend\nreturn a()\n"
    )
    assert [scripts.locate("main", line) for line in (2, 3, 5, 6)] == [
        ("lib/a.lua", 2),
        ("lib/a.lua", 3),
        ("lib/a.lua", 4),
        ("main.lua", 2),
    ]


def test_a_cycle_of_includes_is_refused_and_shown(library: Path) -> None:
    (library / "main.lua").write_text('--- @include "lib/a"\n')
    (library / "lib" / "a.lua").write_text('--- @include "lib/b"\n')
    (library / "lib" / "b.lua").write_text('--- @include "lib/a"\n')
    with pytest.raises(ValueError, match=r"^Lua include cycle: main -> lib/a -> lib/b -> lib/a$"):
        scripts.load("main")


def test_a_missing_include_is_an_error(library: Path) -> None:
    (library / "main.lua").write_text('--- @include "lib/gone"\n')
    with pytest.raises(FileNotFoundError):
        scripts.load("main")


def test_a_line_number_of_the_server_is_explained_as_file_and_line() -> None:
    script = scripts.load("advance")
    line = 1 + next(i for i, text in enumerate(script.text.splitlines()) if text.startswith("function group.refresh"))
    written = 1 + next(
        i
        for i, text in enumerate((LUA / "lib" / "group.lua").read_text("utf-8").splitlines())
        if text.startswith("function group.refresh")
    )
    message = f"WRONGTYPE Operation against a key, script: {script.sha}, on @user_script:{line}."
    assert (
        script.explain(message)
        == f"WRONGTYPE Operation against a key, script: {script.sha}, on @lib/group.lua:{written}."
    )


def test_the_last_line_is_the_scripts_own_and_one_beyond_it_is_left_alone() -> None:
    script = scripts.load("add")
    last = len(script.origins)
    own = len((LUA / "add.lua").read_text("utf-8").splitlines())
    assert scripts.locate("add", last) == ("add.lua", own)
    assert scripts.locate("add", last + 5) == ("add.lua", last + 5)


def test_a_message_without_a_line_stays_as_it_is() -> None:
    assert scripts.load("add").explain("OOM command not allowed") == "OOM command not allowed"
