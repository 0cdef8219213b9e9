"""The state of the monitor, and how a key changes it. Pure: things to be done are returned as effects."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from groupmq import Job, QueueSurvey
from groupmq.cli.monitor.history import History
from groupmq.cli.monitor.keyboard import KeyAction
from groupmq.cli.output import tables

PageName = Literal["queue", "job", "help"]
JUMP = 10
"""Rows that PgUp and PgDn move."""
NEWS = timedelta(seconds=10)
NONE_SELECTED = "no job is selected: move with the arrow keys"


class MonitorRow(NamedTuple):
    """A job in one of the lists that can be walked."""

    kind: Literal["run", "failure"]
    job_id: str


class Switch(NamedTuple):
    """Pause or resume the queue."""

    paused: bool


class RetryFailed(NamedTuple):
    job_id: str


class Inspect(NamedTuple):
    job_id: str


class Quit(NamedTuple):
    pass


Effect = Switch | RetryFailed | Inspect | Quit


class Question(NamedTuple):
    """An action that is done only after a yes."""

    text: str
    effect: Effect


@dataclass(frozen=True, slots=True)
class State:
    queue: str
    where: str
    interval: float = 1.0
    look: QueueSurvey | None = None
    history: History = field(default_factory=History)
    trouble: str | None = None
    """Why the last look failed."""
    message: str | None = None
    """The result of the last action, shown until the next key or for a while."""
    message_until: datetime | None = None
    page: PageName = "queue"
    selected: MonitorRow | None = None
    question: Question | None = None
    job_id: str | None = None
    """The job that is inspected."""
    job: Job | None = None
    """None while it is fetched, or when it is gone."""
    scroll: int = 0

    @property
    def rows(self) -> list[MonitorRow]:
        """The rows that can be selected: running jobs, then failures."""
        if self.look is None:
            return []
        runs = [MonitorRow("run", run.id) for run in self.look.runs]
        return runs + [MonitorRow("failure", failure.id) for failure in self.look.failures]

    @property
    def paused(self) -> bool:
        return self.look is not None and self.look.paused


def seen(state: State, look: QueueSurvey) -> State:
    """The state after a successful look. The selection stays with its job, or else at its position."""
    after = replace(state, look=look, history=state.history.and_then(look), trouble=None)
    if state.message_until is not None and look.at >= state.message_until:
        after = replace(after, message=None, message_until=None)
    if state.selected is None or state.selected in after.rows:
        return after
    rows = after.rows
    at = state.rows.index(state.selected) if state.selected in state.rows else 0
    return replace(after, selected=rows[min(at, len(rows) - 1)] if rows else None)


def with_notice(state: State, text: str) -> State:
    """Show a message for a while."""
    return replace(state, message=text, message_until=state.look.at + NEWS if state.look else None)


def shown(state: State, job_id: str, job: Job | None) -> State:
    """The state after the inspected job was fetched, or was found to be gone."""
    if state.job_id != job_id:
        return state
    if job is None:
        rest = "; this is how it was" if state.job else ""
        return with_notice(state, f"job {tables.words(job_id)} is gone{rest}")
    return replace(state, job=job)


def press(state: State, action: KeyAction) -> tuple[State, Effect | None]:
    """The state after a key, and the effect to carry out."""
    if state.question is not None:
        answered = replace(state, question=None)
        return answered, state.question.effect if action is KeyAction.YES else None
    state = replace(state, message=None)
    if action is KeyAction.HELP:
        return replace(state, page="queue" if state.page == "help" else "help", scroll=0, job_id=None), None
    if action is KeyAction.PAUSE:
        return _asked_to_switch(state), None
    if action is KeyAction.RETRY:
        return _asked_to_retry(state), None
    if state.page == "queue":
        return _in_the_lists(state, action)
    if action in (KeyAction.BACK, KeyAction.QUIT, KeyAction.OPEN):
        return replace(state, page="queue", job_id=None, job=None, scroll=0), None
    return replace(state, scroll=_moved(state.scroll, action, 2**31)), None


def _in_the_lists(state: State, action: KeyAction) -> tuple[State, Effect | None]:
    rows = state.rows
    if action is KeyAction.QUIT:
        return state, Quit()
    if action is KeyAction.BACK:
        return replace(state, selected=None), None
    if action is KeyAction.OPEN:
        if state.selected is None:
            return with_notice(state, NONE_SELECTED), None
        job_id = state.selected.job_id
        return replace(state, page="job", job_id=job_id, job=None, scroll=0), Inspect(job_id)
    if not rows:
        return state, None
    if state.selected not in rows:
        start = rows[-1] if action is KeyAction.LAST else rows[0]
        return (replace(state, selected=start) if action in _MOVES else state), None
    at = _moved(rows.index(state.selected), action, len(rows))
    return replace(state, selected=rows[at]), None


_MOVES = {
    KeyAction.UP: -1,
    KeyAction.DOWN: 1,
    KeyAction.PAGE_UP: -JUMP,
    KeyAction.PAGE_DOWN: JUMP,
    KeyAction.FIRST: -(2**32),
    KeyAction.LAST: 2**32,
}


def _moved(at: int, action: KeyAction, length: int) -> int:
    return max(0, min(length - 1, at + _MOVES.get(action, 0)))


def _asked_to_switch(state: State) -> State:
    if state.look is None:
        return state
    if state.paused:
        text = f"Resume {tables.words(state.queue)}? Jobs start again."
    else:
        text = f"Pause {tables.words(state.queue)}? Nothing new starts; running jobs go on."
    return replace(state, question=Question(text, Switch(paused=not state.paused)))


def _asked_to_retry(state: State) -> State:
    job_id, found = _chosen(state)
    if job_id is None:
        return with_notice(state, NONE_SELECTED)
    if found != "failed":
        return with_notice(state, f"job {tables.words(job_id)} is {found}; only failed jobs can be retried")
    text = f"Retry job {tables.words(job_id)}? Its attempts start from 0 again."
    return replace(state, question=Question(text, RetryFailed(job_id)))


def _chosen(state: State) -> tuple[str | None, str]:
    """The job a key is about, and its state."""
    if state.page == "job":
        return state.job_id, state.job.state if state.job else "gone"
    if state.look is None or state.selected is None:
        return None, ""
    if state.selected.kind == "run":
        return state.selected.job_id, "active"
    states = {failure.id: failure.state or "gone" for failure in state.look.failures}
    return state.selected.job_id, states.get(state.selected.job_id, "gone")
