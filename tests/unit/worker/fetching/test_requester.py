"""What a requester does with the outcomes that it reports."""

from __future__ import annotations

from typing import Any

import pytest

from groupmq.worker.fetching import requester as module
from groupmq.worker.fetching.demand import RequesterDemand
from groupmq.worker.fetching.requester import Requester


class Asked:
    """A requester, and how often it has asked for a call."""

    def __init__(self) -> None:
        self.calls = self.looks = 0
        self.demand = RequesterDemand()
        self.requester: Any = Requester("w:0", self.demand, self._call, self._look)

    def _call(self) -> None:
        self.calls += 1

    def _look(self) -> None:
        self.looks += 1

    def reports(self, *names: Any) -> None:
        for name in names:
            self.requester.report(name)


def test_an_outcome_asks_for_a_call_unless_it_can_wait_for_another() -> None:
    asked = Asked()
    asked.requester.report_later("later")
    assert (asked.calls, asked.demand.urgent) == (0, False)
    asked.reports("now")
    assert (asked.calls, asked.demand.urgent) == (1, True)
    assert asked.requester.reports == ["later", "now"]


def test_what_waits_for_an_outcome_that_does_not_come_is_sent_all_the_same() -> None:
    asked = Asked()
    asked.requester.slot_freed()
    assert (asked.looks, asked.demand.urgent) == (1, False), "there is nothing to send"
    asked.requester.report_later("later")
    asked.requester.slot_freed()
    assert (asked.looks, asked.demand.urgent) == (2, True)


def test_what_does_not_fit_in_a_call_goes_with_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "portion_of", lambda reports, *, kept: min(2, len(reports)))
    asked = Asked()
    asked.requester.reports += ["a", "b", "c"]
    asked.requester.begin_call(kept=False)
    assert (asked.requester.sent, asked.requester.reports) == (["a", "b"], ["c"])
    assert (asked.requester.request, asked.demand.urgent) == (1, True)
    assert asked.requester.unanswered() == ["c", "a", "b"]
    assert asked.requester.end_call() == ["a", "b"]
    asked.demand.urgent = False
    asked.requester.begin_call(kept=False)
    assert (asked.requester.request, asked.demand.urgent) == (2, False)


def test_the_heartbeat_takes_over_what_is_not_sent_and_leaves_what_is_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "portion_of", lambda reports, *, kept: len(reports))
    asked = Asked()
    asked.reports("a")
    asked.requester.begin_call(kept=False)
    asked.reports("b", "c")
    reports = asked.requester.reports
    assert asked.requester.take_unsent() == ["b", "c"]
    assert asked.requester.unanswered() == ["a"]
    assert asked.requester.reports is reports, "the loop may be about to append to it"


def test_rows_are_counted_for_the_decision_when_to_call() -> None:
    asked = Asked()
    asked.requester.row_started()
    asked.requester.row_started()
    asked.requester.row_ended()
    assert asked.demand.in_hand == 1
