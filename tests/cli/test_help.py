"""The help: complete, grouped, with examples; and the completion of shells."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from groupmq.cli import tree
from tests.cli.operating import Command

NOWHERE = Command("redis://127.0.0.1:1", queue="")
OURS = ("monitor", "job", "queue", "repeat", "mark", "check", "server", "demo", "bench", "completion")


def commands(name: str) -> Iterator[tuple[list[str], click.Command]]:
    context = click.Context(tree.cli)
    found = tree.cli.get_command(context, name)
    assert found is not None
    yield [name], found
    if isinstance(found, click.Group):
        for inner in found.list_commands(context):
            yield [name, inner], found.commands[inner]


EVERY = [pair for name in OURS for pair in commands(name)]
ALL = [pair for name in tree.COMMANDS for pair in commands(name)]


@pytest.mark.parametrize(("words", "found"), EVERY, ids=[" ".join(words) for words, _ in EVERY])
def test_every_command_has_help_with_examples(words: list[str], found: click.Command) -> None:
    assert found.help
    assert "Examples:" in (found.epilog or "")
    assert not found.get_short_help_str(70).endswith("...")
    if words != ["bench"]:  # whose help is that of the benchmark
        answer = NOWHERE(*words, "--help")
        assert answer.code == 0
        assert f"groupmq {' '.join(words)}" in answer.out


def test_the_help_groups_the_commands() -> None:
    out = NOWHERE("--help").out
    assert [line for line in out.splitlines() if line in ("Run:", "Look:", "Change:", "Try:")] == [
        "Run:",
        "Look:",
        "Change:",
        "Try:",
    ]


def test_all_output_commands_speak_json() -> None:
    silent = {"bench", "completion"}
    for words, found in ALL:
        if not isinstance(found, click.Group) and words[0] not in silent:
            assert any("--json" in param.opts for param in found.params), words


def test_a_queue_may_be_named_by_either_word_everywhere() -> None:
    for words, found in ALL:
        for param in found.params:
            if "--queue" in param.opts:
                assert {"--namespace", "-q"} <= set(param.opts), words


def test_a_command_that_cannot_be_loaded_is_reported_and_harms_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tree.COMMANDS, "telescope", ("groupmq.cli.no_such_module", "telescope", "Look"))
    assert "not available in this installation" in NOWHERE("telescope", "--far", "x").line(2)
    answer = NOWHERE("--help")
    assert answer.code == 0
    assert "telescope" not in answer.out


def test_no_words_at_all_show_the_help() -> None:
    answer = NOWHERE.program()
    assert "Jobs of one group run in order" in answer.out + answer.err


def test_the_version() -> None:
    assert NOWHERE("--version").out.startswith("groupmq, version ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell(shell: str) -> None:
    assert "_GROUPMQ_COMPLETE" in NOWHERE("completion", shell).out


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("groupmq qu", "queue"),
        ("groupmq job re", "retry"),
        ("groupmq job list --sta", "--state"),
        ("groupmq job list --state fa", "failed"),
    ],
)
def test_a_shell_is_offered_what_fits(typed: str, offered: str) -> None:
    words = str(len(typed.split()) - 1)
    answer = NOWHERE.program(_GROUPMQ_COMPLETE="bash_complete", COMP_WORDS=typed, COMP_CWORD=words)
    assert f"plain,{offered}" in answer.out.splitlines()


def test_every_port_listens_on_this_machine_by_default() -> None:
    names = tree.cli.list_commands(click.Context(tree.cli))
    found = {
        " ".join(words): option.default
        for name in names
        for words, command in commands(name)
        for option in command.params
        if "--bind" in option.opts
    }
    assert {"worker", "exporter"} <= {words.split()[0] for words in found}
    assert set(found.values()) == {"127.0.0.1"}
