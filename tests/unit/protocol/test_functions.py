"""Loading of the Lua scripts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

from groupmq.protocol import commands, functions

LUA = Path(str(resources.files("groupmq.protocol"))) / "lua"


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in place of the folder of scripts."""
    (tmp_path / "lua" / "lib").mkdir(parents=True)
    monkeypatch.setattr(resources, "files", lambda _package: tmp_path)
    _clear()
    return tmp_path / "lua"


@pytest.fixture(autouse=True)
def _fresh_cache() -> Iterator[None]:
    """Forget scripts that a test has loaded from another folder."""
    yield
    _clear()


def _clear() -> None:
    for cached in (functions.load, functions.library, functions.read, functions._read):
        cached.cache_clear()


def test_every_script_file_can_be_called_by_its_name() -> None:
    assert functions.names() == sorted(path.stem for path in LUA.glob("*.lua"))


def test_every_command_names_a_script_that_exists_and_every_script_has_a_command() -> None:
    source = "".join(path.read_text("utf-8") for path in Path(commands.__file__).parent.glob("*.py"))
    assert set(re.findall(r'Call\(\s*"(\w+)"', source)) == set(functions.names())


def without_comments(file: str) -> list[str]:
    """The lines of a file, empty where a comment stands."""
    text = re.sub(r"^--\[\[.*?\]\]$", lambda comment: "\n" * comment[0].count("\n"), FILES[file], flags=re.S | re.M)
    return ["" if line.lstrip().startswith("--") else line for line in text.splitlines()]


FILES = {str(path.relative_to(LUA)): path.read_text("utf-8") for path in LUA.rglob("*.lua")}


def lines_by_file(text: str, origins: tuple[tuple[str, int], ...]) -> dict[str, dict[int, str]]:
    """The lines of each file in a text, by their numbers, without the lines that the loader has added."""
    lines = text.splitlines()
    assert len(lines) == len(origins)
    found: dict[str, dict[int, str]] = {}
    for line, (file, number) in zip(lines, origins, strict=True):
        found.setdefault(file, {}).setdefault(number, line)
    return found


@pytest.mark.parametrize("name", functions.names())
def test_a_script_has_every_line_of_every_file_that_it_includes(name: str) -> None:
    script = functions.load(name)
    found = lines_by_file(script.text, script.origins)
    assert f"{name}.lua" in found
    for file in found:
        check_lines(file, found[file])


def test_the_library_has_every_line_of_every_file() -> None:
    library = functions.library()
    found = lines_by_file(library.text, library.origins)
    assert {file for file in found if file != "library"} == set(FILES)
    for file in FILES:
        check_lines(file, found[file])


def check_lines(file: str, found: dict[int, str]) -> None:
    for number, line in enumerate(without_comments(file), start=1):
        written = FILES[file].splitlines()[number - 1]
        if not written.startswith("--- @") and number in found and number > 1:
            assert found[number] == line, (file, number)


@pytest.mark.parametrize("name", functions.names())
def test_the_sha_is_that_of_the_text_that_is_sent(name: str) -> None:
    script = functions.load(name)
    assert script.sha == hashlib.sha1(script.text.encode(), usedforsecurity=False).hexdigest()
    assert functions.expand(name) == script.text


def test_the_name_of_the_library_changes_with_its_text() -> None:
    library = functions.library()
    assert library.text.startswith(f"#!lua name={library.name}\n")
    for name in functions.names():
        assert f"function_name = '{library.name}_{name}'" in library.text
        assert functions.load(name).function == f"{library.name}_{name}"
    assert functions.named("#!lua name=LIBRARY\n1\n", ()).name != functions.named("#!lua name=LIBRARY\n2\n", ()).name


def test_what_only_looks_may_be_asked_of_a_replica_and_a_full_server_refuses_what_adds() -> None:
    flags = {name: set(functions.read(name).flags) for name in functions.names()}
    looking = {name for name, found in flags.items() if "no-writes" in found}
    refused = {name for name, found in flags.items() if not found}
    assert {"get", "counts", "list", "stats", "survey", "waits", "look_settings", "log"} <= looking
    # A worker that starts on a full server has to open its queue before it can drain it.
    assert refused == {"add", "append_log", "define", "mark", "report_progress", "tick", "update"}
    assert all(found <= {"no-writes", "allow-oom"} for found in flags.values())


def test_nothing_is_sorted_by_the_locale_of_the_server() -> None:
    """Lua compares strings by the locale (lua/lib/bytes.lua). The test servers have a locale in which that matters."""
    assert not re.findall(r"table\.sort\([\w.]+\)", functions.load("add").library.text)


@pytest.fixture
def frames(library: Path) -> Path:
    """The three files that every function needs."""
    for name, frame in (("plain", "plain"), ("reading", "reads"), ("writing", "writes")):
        (library / "lib" / f"{name}.lua").write_text(f"local function begin_{frame}() end\n")
    return library


def test_a_shared_include_comes_once_before_its_first_use(frames: Path) -> None:
    (frames / "main.lua").write_text('--- @include "lib/a"\n--- @include "lib/b"\n--- @plain\nreturn a + b\n')
    (frames / "lib" / "a.lua").write_text('--- @include "lib/base"\nlocal a = base\n')
    (frames / "lib" / "b.lua").write_text('--- @include "lib/base"\nlocal b = base\n')
    (frames / "lib" / "base.lua").write_text("local base = 1\n")
    lines = functions.expand("main").splitlines()
    assert lines[:5] == [
        "#!lua",
        "local base = 1",
        "local a = base",
        "local b = base",
        "local function begin_plain() end",
    ]
    assert lines[-1] == "return a + b"


def test_what_is_private_to_a_file_is_a_block_of_its_own(frames: Path) -> None:
    (frames / "main.lua").write_text('--- @include "lib/a"\n--- @plain\nreturn a()\n')
    (frames / "lib" / "a.lua").write_text("local a\n--- @private\nlocal hidden = 1\na = function() return hidden end\n")
    lines = functions.expand("main").splitlines()
    assert lines[1:6] == ["local a", "do", "local hidden = 1", "a = function() return hidden end", "end"]
    assert [functions.locate("main", line) for line in (3, 4, 6)] == [
        ("lib/a.lua", 2),
        ("lib/a.lua", 3),
        ("lib/a.lua", 4),
    ]


def test_a_file_without_a_body_is_refused(frames: Path) -> None:
    (frames / "main.lua").write_text("return 1\n")
    with pytest.raises(ValueError, match=r"^main\.lua: no line begins its body"):
        functions.load("main")


def test_a_cycle_of_includes_is_refused_and_shown(frames: Path) -> None:
    library = frames
    (library / "main.lua").write_text('--- @include "lib/a"\n--- @plain\n')
    (library / "lib" / "a.lua").write_text('--- @include "lib/b"\n')
    (library / "lib" / "b.lua").write_text('--- @include "lib/a"\n')
    with pytest.raises(ValueError, match=r"^Lua include cycle: lib/a -> lib/b -> lib/a$"):
        functions.load("main")


def test_a_missing_include_is_an_error(frames: Path) -> None:
    (frames / "main.lua").write_text('--- @include "lib/gone"\n--- @plain\n')
    with pytest.raises(FileNotFoundError):
        functions.load("main")


@pytest.mark.parametrize("by", ["function", "script"])
def test_a_line_number_of_the_server_is_explained_as_file_and_line(by: str) -> None:
    script = functions.load("advance")
    sent = script.text if by == "script" else script.library.text
    line = 1 + next(i for i, text in enumerate(sent.splitlines()) if text.startswith("function group_state.refresh"))
    written = 1 + next(
        i
        for i, text in enumerate((LUA / "lib" / "group_state.lua").read_text("utf-8").splitlines())
        if text.startswith("function group_state.refresh")
    )
    message = f"WRONGTYPE Operation against a key, script: {script.sha}, on @user_{by}:{line}."
    assert (
        script.explain(message)
        == f"WRONGTYPE Operation against a key, script: {script.sha}, on @lib/group_state.lua:{written}."
    )


def test_the_last_line_is_the_scripts_own_and_one_beyond_it_is_left_alone() -> None:
    script = functions.load("add")
    last = len(script.origins)
    own = len((LUA / "add.lua").read_text("utf-8").splitlines())
    assert functions.locate("add", last) == ("add.lua", own)
    assert functions.locate("add", last + 5) == ("add.lua", last + 5)


def test_a_message_without_a_line_stays_as_it_is() -> None:
    assert functions.load("add").explain("OOM command not allowed") == "OOM command not allowed"
