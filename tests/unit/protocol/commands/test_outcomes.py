"""Outcomes: the fields that Python sends are those that the Lua side reads, by number."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from groupmq.protocol.commands import outcomes

LUA = (Path(str(resources.files("groupmq.protocol"))) / "lua" / "lib" / "outcome.lua").read_text("utf-8")
COMMON = ["kind", "id", "fence"]
KINDS = {
    "RETRY": outcomes.RETRY,
    "FAIL": outcomes.FAIL,
    "RELEASE": outcomes.RELEASE,
    "LIMITED": outcomes.RATE_LIMITED,
    "BEGIN": outcomes.BEGIN,
    "ABANDON": outcomes.ABANDON,
    "SNOOZE": outcomes.SNOOZE,
    "ENDED": outcomes.ENDED,
}
"""By their names in Lua. Completed jobs travel in columns and have none."""
FIELDS: dict[str, Any] = {
    "FAILURE": outcomes.FailureOutcome,
    "RETRIED": outcomes.RetryOutcome,
    "RESTED": outcomes.RateLimitedOutcome,
    "RELEASED": outcomes.ReleaseOutcome,
    "SNOOZED": outcomes.SnoozeOutcome,
}
IN_LUA = {"delay_ms": "DELAY", "yields": "YIELD"}
"""Fields that have another name there: Lua counts every time in milliseconds."""


def test_the_kinds_have_the_numbers_that_lua_gives_them() -> None:
    found = re.findall(r"^local ([A-Z]+) = (\d+) -- ", LUA, re.MULTILINE)
    assert {name: int(number) for name, number in found} == KINDS
    assert sorted([outcomes.COMPLETE, *KINDS.values()]) == list(range(9))


def test_every_outcome_begins_with_its_kind_its_id_and_its_fence() -> None:
    numbers = ", ".join(str(at) for at in range(1, len(COMMON) + 1))
    assert f"local {', '.join(COMMON).upper()} = {numbers}\n" in LUA
    assert list(outcomes.BareOutcome._fields) == COMMON


def test_lua_declares_the_fields_of_each_kind() -> None:
    assert set(re.findall(r"^local ([A-Z]+) = \{", LUA, re.MULTILINE)) == set(FIELDS)


@pytest.mark.parametrize("name", FIELDS)
def test_the_fields_of_a_kind_have_the_numbers_that_lua_gives_them(name: str) -> None:
    declared = re.search(rf"^local {name} = \{{(.*?)^\}}", LUA, re.MULTILINE | re.DOTALL)
    assert declared is not None
    in_lua = {field: int(number) for field, number in re.findall(r"(\w+) = (\d+)", declared[1])}
    fields = FIELDS[name]._fields
    assert list(fields[: len(COMMON)]) == COMMON
    in_python = {IN_LUA.get(field, field.upper()): at for at, field in enumerate(fields, 1) if field not in COMMON}
    assert in_python == in_lua


OTHER: list[outcomes.Outcome] = [outcomes.begun("b", 2), outcomes.released("r", 4, begun=True)]


def test_completed_jobs_travel_in_columns_and_their_results_in_a_blob() -> None:
    done: list[outcomes.Outcome] = [outcomes.completed("a", 1, b"12"), outcomes.completed("c", 3, None)]
    sent = outcomes.sort_outcomes(done)
    assert [list(column) for column in sent.completed] == [["a", "c"], [1, 3], [2, -1]]
    assert (sent.others, sent.blob, sent.statuses([2])) == ([], b"12", [1, 0])


def test_jobs_without_results_say_so_once() -> None:
    sent = outcomes.sort_outcomes([outcomes.completed("a", 1, None)])
    assert [sent.completed[2], sent.blob] == [False, b""]


@pytest.mark.parametrize("mixed", [True, False])
def test_all_others_travel_one_by_one_and_each_answer_finds_its_outcome(mixed: bool) -> None:
    done: list[outcomes.Outcome] = [outcomes.completed("a", 1, None), outcomes.completed("c", 3, b"3")]
    given = [OTHER[0], done[0], OTHER[1], done[1]] if mixed else OTHER
    sent = outcomes.sort_outcomes(given)
    assert sent.others == OTHER
    assert [list(column) for column in sent.completed[:2]] == ([["a", "c"], [1, 3]] if mixed else [[], []])
    # The scripts count the completed ones first.
    assert sent.statuses([1]) == ([1, 0, 1, 1] if mixed else [0, 1])


def test_no_outcomes_are_empty_columns() -> None:
    sent = outcomes.sort_outcomes([])
    assert ([list(column) for column in sent.completed[:2]], sent.others, sent.size) == ([[], []], [], 0)
