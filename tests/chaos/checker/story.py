"""The history, assembled from its lines: adds, runs, events of the server's log, actions of the operator, faults.

`tests.chaos.history` describes the lines. Server times are milliseconds of the server's clock; `t` is the machine's
monotonic clock in seconds. `Story.mono` and `Story.ms` convert between them.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.chaos.checker.parts import Action, Event, Fault, Life, Line, Run, Spec


@dataclass
class Story:
    specs: list[Spec]
    runs: list[Run]
    events: dict[str, list[Event]]
    lives: list[Life]
    actions: list[Action]
    faults: list[Fault]
    lines: dict[str, list[Line]]
    """All lines by their kind, for checks that need no assembled objects."""
    begun: float
    _offset: float

    # Time

    def mono(self, ms: float) -> float:
        return (ms - self._offset) / 1000

    def ms(self, t: float) -> float:
        return t * 1000 + self._offset

    def when(self, t: float) -> str:
        return "at an unknown time" if not math.isfinite(t) else f"{t - self.begun:.3f} s into the run"

    def when_ms(self, ms: float) -> str:
        return self.when(self.mono(ms))

    def of_kind(self, kind: str) -> list[Line]:
        return self.lines.get(kind, [])

    def actions_on(self, life: Life, *what: str) -> Iterator[Action]:
        for action in self.actions_of_job.get((life.q, life.id), ()):
            if not what or action.what in what:
                yield action

    def __post_init__(self) -> None:
        self.actions_of_job: dict[tuple[str, str], list[Action]] = defaultdict(list)
        for action in self.actions:
            if "job" in action.told:
                self.actions_of_job[action.q, action.told["job"]].append(action)
        self.faults_of: dict[object, list[Fault]] = defaultdict(list)
        for fault in self.faults:
            self.faults_of[fault.pid if fault.pid is not None else fault.target].append(fault)
        self.starved_for_all: list[Fault] = []
        """Times in which the network or the server got no CPU time, which affects all processes."""
        for line in self.of_kind("starved"):
            starved = Fault("starved", line["actor"], line["pid"], line["since"], line["t"])
            if line["actor"] in ("stage", "server"):
                self.starved_for_all.append(starved)
            else:
                self.faults_of[line["pid"]].append(starved)
        for line in self.of_kind("poison"):
            self.faults_of[line["pid"]].append(Fault("poison", line["actor"], line["pid"], line["t"], line["t"]))
        self.workers = {line["worker"]: line["pid"] for line in self.of_kind("ready") if line.get("worker")}
        self.killed = {f.pid: f.t0 for f in self.faults if f.kind == "kill"}
        self.killed |= {line["victim"]: line["t"] for line in self.of_kind("poison")}
        self.gone = {line["of"]: line["t"] for line in self.of_kind("exit")}


def assemble(lines: Iterable[Line]) -> Story:
    """Assemble a history from its lines."""
    by_kind: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        by_kind[line["k"]].append(line)
    begun = min((line["t"] for line in by_kind["round"]), default=0.0)
    offsets = sorted(line["wall"] - line["t"] * 1000 for line in by_kind["clock"])
    events = _events(by_kind)
    runs = _runs(by_kind)
    specs = _specs(by_kind)
    actions = _actions(by_kind)
    offset = offsets[len(offsets) // 2] if offsets else 0.0
    lives = _lives(events, _births(specs, runs), _Redrives(actions, offset))
    _match(lives, runs, specs, actions)
    return Story(specs, runs, events, lives, actions, _faults(by_kind), by_kind, begun, offset)


def _specs(by_kind: dict[str, list[Line]]) -> list[Spec]:
    answers = {line["op"]: line for line in by_kind["added"]}
    found = []
    for line in by_kind["adding"]:
        answer = answers.get(line["op"])
        for i, told in enumerate(line["items"]):
            spec = Spec(line["q"], told["uid"], told, line["t"])
            if answer is not None:
                spec.t1, spec.answer = answer["t"], answer["answer"]
                spec.ack = answer["jobs"][i] if answer["answer"] == "ok" else None
            found.append(spec)
    return found


def _runs(by_kind: dict[str, list[Line]]) -> list[Run]:
    """Two starts under one fence stay two runs, so that the checks can report them. An end belongs to the last one."""
    found: list[Run] = []
    by_fence: dict[tuple[str, int], Run] = {}
    names = ("q", "job", "uid", "digest", "group", "fence", "attempt", "max", "priority", "order", "created", "at")
    for line in by_kind["start"]:
        known = {name: line[name] for name in names}
        # The time of the grant: fences are the server's microseconds. The reply to a resent call has a later time.
        known["at"] = min(line["at"], line["fence"] // 1000)
        run = Run(
            **known,
            worker=line["worker"],
            pid=line["pid"],
            actor=line["actor"],
            start=line["t"],
        )
        found.append(run)
        by_fence[run.q, run.fence] = run
    for line in by_kind["end"]:
        ended = by_fence.get((line["q"], line["fence"]))
        if ended is not None:
            ended.end, ended.how = line["t"], line["how"]
    for line in by_kind["lost"]:
        loser = by_fence.get((line["q"], line["fence"]))
        if loser is not None:
            loser.lost = line["t"]
    return found


def _events(by_kind: dict[str, list[Line]]) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = defaultdict(list)
    names = ("job", "group", "attempt", "worker", "delay", "reason", "final", "fence")
    for line in by_kind["event"]:
        known = {name: line[name] for name in names if name in line}
        found[line["q"]].append(Event(line["q"], line["n"], line["kind"], line["at"], **known))
    for log in found.values():
        log.sort(key=lambda event: event.n)
    return dict(found)


def _actions(by_kind: dict[str, list[Line]]) -> list[Action]:
    answers = {line["op"]: line for line in by_kind["acted"]}
    found = []
    for line in by_kind["acting"]:
        action = Action(line["q"], line["what"], line, line["t"])
        answer = answers.get(line["op"])
        if answer is not None:
            action.t1, action.answer, action.error = answer["t"], answer.get("answer"), answer.get("error")
        found.append(action)
    return found


def _faults(by_kind: dict[str, list[Line]]) -> list[Fault]:
    over: dict[tuple[Any, ...], float] = {}
    for line in by_kind["fault over"]:
        over[line["kind"], line["target"], line["planned"]] = line["t"]
    healed = max((line["t"] for line in by_kind["healed"]), default=math.inf)
    found = []
    for line in by_kind["fault"]:
        until = over.get((line["kind"], line["target"], line["planned"]))
        if until is None:
            until = healed if line["length"] else line["t"]
        found.append(Fault(line["kind"], line["target"], line["of"], line["t"], until))
    return found


def _births(specs: list[Spec], runs: list[Run]) -> set[tuple[str, str, int]]:
    """Jobs whose creation time is known."""
    acked = {(spec.q, spec.ack["id"], spec.ack["created"]) for spec in specs if spec.ack is not None and spec.acked}
    return acked | {(run.q, run.job, run.created) for run in runs}


class _Redrives:
    """When operators let failed jobs run again."""

    def __init__(self, actions: list[Action], offset: float) -> None:
        self._offset = offset
        self._actions: dict[str, list[Action]] = defaultdict(list)
        for action in actions:
            if action.what in ("retry", "retry_many"):
                self._actions[action.q].append(action)

    def cover(self, event: Event) -> bool:
        t = (event.at - self._offset) / 1000
        return any(
            action.t0 - 0.05 <= t <= action.t1 + 0.05 and action.told.get("job", event.job) == event.job
            for action in self._actions[event.q]
        )


def _lives(events: dict[str, list[Event]], births: set[tuple[str, str, int]], redrives: _Redrives) -> list[Life]:
    """The jobs of the event log.

    An `added` of a failed job is a redrive by an operator, unless a job is known to have been created at that moment:
    `clean` deletes finished jobs without an event, after which their ids are free.
    """
    found: list[Life] = []
    for q, log in events.items():
        current: dict[str, Life] = {}
        for event in log:
            if event.job is None or event.kind in ("progress", "blocked", "unblocked"):
                continue  # these events do not change the job
            life = current.get(event.job)
            if event.kind == "added" and (
                life is None
                or life.state != "failed"
                or (q, event.job, event.at) in births
                or not redrives.cover(event)
            ):
                life = current[event.job] = Life(q, event.job, event.at, event.group, event.n)
                found.append(life)
            elif event.kind == "added":
                event.kind = "redriven"
            elif life is None:
                # The log of a job begins with `added`, so no client has added this one.
                life = current[event.job] = Life(q, event.job, -1, event.group, event.n)
                found.append(life)
            if life is not None:
                life.events.append(event)
    return found


def _match(lives: list[Life], runs: list[Run], specs: list[Spec], actions: list[Action]) -> None:
    by_birth = {(life.q, life.id, life.created): life for life in lives}
    by_uid = {(spec.q, spec.uid): spec for spec in specs}
    for run in runs:
        life = by_birth.get((run.q, run.job, run.created))
        if life is not None:
            life.runs.append(run)
            if life.spec is None:
                life.spec = by_uid.get((run.q, run.uid))
    for spec in specs:
        if spec.ack is not None and spec.acked:
            life = by_birth.get((spec.q, spec.ack["id"], spec.ack["created"]))
            if life is not None:
                life.spec = spec
    births: dict[tuple[str, str], list[Life]] = defaultdict(list)
    for life in lives:
        life.runs.sort(key=lambda run: run.fence)
        births[life.q, life.id].append(life)
    for action in actions:
        if action.what in ("change_delay", "promote"):
            for life in births.get((action.q, action.told["job"]), ()):
                life.moved = min(life.moved, action.t0)


class Limits:
    """How many jobs of a group may run at once: the highest limit that may have been in force."""

    def __init__(self, story: Story) -> None:
        self._changes: dict[tuple[str, str], list[Action]] = defaultdict(list)
        for action in story.actions:
            if action.what == "set_group_concurrency":
                self._changes[action.q, action.told["group"]].append(action)
        self._starts = {key: [a.t0 for a in actions] for key, actions in self._changes.items()}

    def most(self, q: str, group: str, since: float, until: float) -> int:
        changes = self._changes.get((q, group))
        if not changes:
            return 1
        before = bisect_left(self._starts[q, group], until)
        most = 1
        for action in reversed(changes[:before]):
            most = max(most, action.told["limit"] or 1)
            if action.known and action.t1 < since:
                break  # earlier limits no longer hold
        return most
