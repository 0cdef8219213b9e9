"""Builds histories by hand for tests of the checker: a sound one first, then the same with one line wrong."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.chaos.checker.finding import Finding
from tests.chaos.checker.parts import Line
from tests.chaos.checker.verdict import Verdict, judge

EPOCH = 1_700_000_000_000
"""Server milliseconds at second 0 of the monotonic clock."""
PID = 100


class Book:
    """A history under construction. Times are seconds, on both clocks."""

    def __init__(self, queue: str = "orders") -> None:
        self.q = queue
        self.lines: list[Line] = []
        self._events: Counter[str] = Counter()
        self._ops = 0
        self.note("round", 0.0, seed=1)
        self.note("clock", 0.0, wall=float(EPOCH))
        self.note("spawn", 0.1, name="one", role="worker", of=PID)
        self.note("ready", 0.2, q=queue, worker="w1", name="w1", pid=PID, actor="one")
        self.note("healed", 100.0)
        self.note("drained", 101.0, answer=True, took=1.0, within=60.0)
        self.note("heard all", 102.0, counted={})

    def note(self, kind: str, t: float, /, **more: Any) -> Line:
        line = {"k": kind, "t": t, "pid": PID, "actor": "one", **more}
        self.lines.append(line)
        return line

    def event(self, kind: str, t: float, job: str, group: str | None = "g", **more: Any) -> Line:
        self._events[self.q] += 1
        n = self._events[self.q]
        told = {"job": job, **({"group": group} if group else {}), **more}
        return self.note("event", t, q=self.q, n=n, kind=kind, at=EPOCH + round(t * 1000), actor="recorder", **told)

    def add(self, job: str, t: float, *, group: str | None = "g", logged: bool = True, **told: Any) -> Line:
        """An acknowledged add. Returns the line of the answer."""
        self._ops += 1
        item = {"uid": f"uid-{job}", "do": "work", "digest": "d", **({"group_id": group} if group else {}), **told}
        self.note("adding", t - 0.01, q=self.q, op=self._ops, items=[item])
        if logged:
            self.event("added", t, job, group)
        created = EPOCH + round(t * 1000)
        order = told.get("order_ms", created + round(told.get("delay", 0) * 1000))
        ack = {"id": job, "dup": False, "order": order, "created": created, "due": None}
        return self.note("added", t + 0.01, op=self._ops, answer="ok", jobs=[ack])

    def start(self, job: str, t: float, added: float, *, attempt: int = 1, **more: Any) -> Line:
        """A granted run that has begun; its fence is the time of its grant."""
        at = EPOCH + round(t * 1000)
        created = EPOCH + round(added * 1000)
        known = {"uid": f"uid-{job}", "digest": "d", "group": "g", "fence": at * 1000, "max": 8, "priority": 0}
        known |= {"order": created, "created": created, "at": at, "worker": "w1"}
        return self.note("start", t + 0.001, q=self.q, job=job, attempt=attempt, **(known | more))

    def end(self, start: Line, t: float, how: str = "returned") -> Line:
        more = {"pid": start["pid"], "actor": start["actor"]}
        return self.note("end", t, q=self.q, job=start["job"], fence=start["fence"], how=how, **more)

    def run(
        self, job: str, t: float, added: float, *, outcome: str = "completed", took: float = 0.1, **more: Any
    ) -> Line:
        """A whole run, whose outcome was accepted. Returns its start."""
        group, attempt = more.get("group", "g"), more.get("attempt", 1)
        self.event("active", t, job, group, attempt=attempt, worker="w1")
        start = self.start(job, t, added, **more)
        how = {"completed": "returned", "retrying": "raised", "failed": "gave up"}[outcome]
        self.end(start, t + took, how)
        told = {"delay": 0.0} if outcome == "retrying" else {}
        self.event(outcome, t + took + 0.01, job, group, attempt=attempt, fence=start["fence"], **told)
        return start

    def act(self, what: str, since: float, until: float, *, answer: Any = True, **told: Any) -> None:
        self._ops += 1
        self.note("acting", since, q=self.q, op=self._ops, what=what, **told)
        self.note("acted", until, op=self._ops, answer=answer)

    def fault(self, kind: str, since: float, until: float | None = None, *, target: str = "one", of: Any = PID) -> None:
        length = 0 if until is None else until - since
        self.note("fault", since, kind=kind, target=target, of=of, length=length, planned=since)
        self.note("fault over", since if until is None else until, kind=kind, target=target, of=of, planned=since)

    def without(self, *lines: Line) -> None:
        for line in lines:
            self.lines.remove(line)

    def verdict(self) -> Verdict:
        return judge(sorted(self.lines, key=lambda line: float(line["t"])))

    def findings(self) -> list[Finding]:
        return self.verdict().findings

    def rules(self) -> set[str]:
        return {finding.rule for finding in self.findings()}


def sound(queue: str = "orders") -> Book:
    """Two jobs of one group, one after the other."""
    book = Book(queue)
    book.add("a", 1.0)
    book.add("b", 1.1)
    book.run("a", 2.0, 1.0)
    book.run("b", 3.0, 1.1)
    return book
