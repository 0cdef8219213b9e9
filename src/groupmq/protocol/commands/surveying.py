"""The call of a monitor: groups, runs and failed attempts at a glance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from groupmq.protocol.call import Call, arguments
from groupmq.protocol.commands.measures import cut_texts_in


class SurveyedGroup(NamedTuple):
    """A group; the jobs without a group have an empty id. -1 = it has no head, or the head need not wait."""

    id: str
    state: str
    waiting: int
    active: int
    delayed: int
    waited_ms: int
    held_ms: int


class SurveyedRun(NamedTuple):
    id: str
    group_id: str
    attempt: int
    started_ms: int
    worker: str


class SurveyedFailure(NamedTuple):
    id: str
    attempt: int
    error: str
    at_ms: int
    final: bool
    worker: str
    state: str
    """The state the job is in now; empty if it is gone."""


class Survey(NamedTuple):
    now: int
    cursor: str
    busiest: list[SurveyedGroup]
    most_delayed: list[SurveyedGroup]
    runs: list[SurveyedRun]
    failures: list[SurveyedFailure]


def survey(
    cursor: str, again: Sequence[str], *, groups: int, runs: int, failures: int, now: int | None = None
) -> Call[Survey]:
    """`again`: groups to look at whether they are in this page or not."""

    def parse(reply: list[Any]) -> Survey:
        at, following, busiest, delayed, running, failed = reply
        return Survey(
            at,
            following.decode(),
            [SurveyedGroup(*cut_texts_in(row)) for row in busiest],
            [SurveyedGroup(*cut_texts_in(row)) for row in delayed],
            [SurveyedRun(*cut_texts_in(row)) for row in running],
            [one._replace(final=bool(one.final)) for one in (SurveyedFailure(*cut_texts_in(row)) for row in failed)],
        )

    args = arguments(cursor=cursor, again=list(again), groups=groups, runs=runs, failures=failures, now=now)
    return Call("survey", args, parse)
