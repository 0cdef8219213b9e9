"""Documents with invented content, one for each page: for viewing templates, and for rendering them with hostile text.

    python -m tests.dashboard.samples [port]

serves every page from these samples, without a server of queues.
"""

from __future__ import annotations

from typing import get_args

from groupmq import EventKind

import math  # isort: skip
import sys
from dataclasses import replace
from datetime import timedelta
from typing import Any

from groupmq.dashboard.documents.choice import Choice, choices
from groupmq.dashboard.documents.event_row import EventRow
from groupmq.dashboard.documents.events import EventsPage
from groupmq.dashboard.documents.failures import FailureRow, FailuresPage
from groupmq.dashboard.documents.group import GroupDocument, GroupSettings
from groupmq.dashboard.documents.job import ActionLink, AttemptRow, JobDocument, JobSetting, LogRow, PositionInGroup
from groupmq.dashboard.documents.jobs import STATES, JobsPage, Search, Term, search_record
from groupmq.dashboard.documents.lanes import SORTS, LanesPage
from groupmq.dashboard.documents.outcome import OutcomePage
from groupmq.dashboard.documents.payload import payload
from groupmq.dashboard.documents.plan import PlanPage, field
from groupmq.dashboard.documents.queue import LABELS, MarkRow, Quantiles, QueuePage, Series, Totals
from groupmq.dashboard.documents.queues import QueuesPage
from groupmq.dashboard.documents.repeats import RepeatRow, RepeatsPage
from groupmq.dashboard.documents.settings import FindingRow, Setting, SettingsPage
from groupmq.dashboard.documents.suggest import Suggestion, Suggestions
from groupmq.dashboard.documents.task import TaskPage, TasksPage
from groupmq.dashboard.documents.timeline import Step
from groupmq.dashboard.documents.workers import TurnRow, WorkerRow, WorkersPage
from groupmq.dashboard.redaction import Redactor
from groupmq.dashboard.search import parse
from tests.dashboard.sample_rows import NOW, OPEN, SampleRows, ago

KINDS: tuple[str, ...] = get_args(EventKind)


class Samples(SampleRows):
    """All pages, with `text` wherever a job, a group or an error could have put it."""

    def queues(self) -> QueuesPage:
        rows = [self.row("orders", 3), self.row("emails", 5), self.row("reports", 8)]
        return QueuesPage(queues=rows, total=3, offset=0, limit=25, next=None, server=self.server(), unreachable=None)

    def queue(self) -> QueuePage:
        points = range(60)
        start = int(NOW.timestamp()) // 60 * 60 - 59 * 60
        return QueuePage(
            queue=self.row(),
            range="hour",
            ranges=choices(LABELS, "hour"),
            step=1,
            series=Series(
                at=[start + 60 * i for i in points],
                completed=[round(400 + 120 * math.sin(i / 7)) for i in points],
                failed=[3 if i % 13 == 0 else 0 for i in points],
                retried=[i % 5 for i in points],
                stalled=[0 for _ in points],
                wait_p50=[None if i < 4 else 0.128 for i in points],
                wait_p95=[None if i < 4 else 0.5 + 0.3 * math.sin(i / 5) for i in points],
                run_p50=[None if i < 4 else 0.064 for i in points],
                run_p95=[None if i < 4 else 0.256 for i in points],
            ),
            marks=[MarkRow(at=ago(1500), label=self.say("v1.4"))],
            totals=Totals(completed=24_032, failed=15, retried=118, stalled=0, rate_limited=4),
            wait=Quantiles(p50=0.128, p95=0.512, mean=0.2, count=24_032),
            run=Quantiles(p50=0.064, p95=0.256, mean=0.09, count=24_165),
            limits=[Setting(name="rate_limit", value=self.say("100/1s"), words="how many jobs the queue may start")],
        )

    def jobs(self) -> JobsPage:
        counts = {"waiting": 1204, "active": 8, "delayed": 37, "failed": 14, "completed": 98_112}
        search = search_record(parse('error:TimeoutError older:10m data:"card declined" newer:soon'))
        terms = [Term(qualifier="data", value=self.say("card"), text=self.say("card")), *search.terms]
        return JobsPage(
            queue=self.row(),
            state="failed",
            states=choices(STATES, "failed", counts),
            q=self.say("error:TimeoutError older:10m"),
            search=Search(terms=terms, problems=search.problems, qualifiers=search.qualifiers),
            jobs=[self.job(i, "failed") for i in range(20)] + [self.job(30, "active"), self.job(31, "delayed")],
            limit=50,
            cursor=None,
            next="abc",
            scanned=2000,
            total=14_000,
            complete=False,
        )

    def suggest(self) -> Suggestions:
        found = [Suggestion(text="error:TimeoutError ", label=self.say("error:TimeoutError"))]
        return Suggestions(q="err", suggestions=found)

    def lanes(self) -> LanesPage:
        return LanesPage(
            queue=self.row(),
            sort="held",
            sorts=choices(SORTS, "held"),
            match=self.say("user"),
            state="",
            states=choices({"": "All", "blocked": "Blocked", "breaker": "Breaker open"}, ""),
            behind=5,
            limit=50,
            most=200,
            lanes=[self.lane(i) for i in range(16)],
            shown=16,
            total=311,
            scanned=311,
            complete=True,
            rest=295,
        )

    def group(self) -> GroupDocument:
        lane = self.lane(0)
        jobs = [self.job(1, "active"), *(self.job(i) for i in range(2, 12)), self.job(20, "delayed")]
        return GroupDocument(
            queue=self.row(),
            lane=lane,
            settings=GroupSettings(paused=False, concurrency=1, rate_limit="100 in 1 s"),
            jobs=jobs,
            first=jobs[0],
            total=38,
            cursor=None,
            next="abc",
            failed=[self.job(40, "failed")],
            completed=[self.job(50 + i, "completed") for i in range(4)],
            history_scanned=2000,
            exists=True,
        )

    def job_page(self) -> JobDocument:
        data = {
            "order": 90071992547409931234567890,
            "card": self.say("4111"),
            "items": [{"sku": self.say("A-1"), "n": 2, "gift": True, "note": None}, 1.5],
        }
        return JobDocument(
            queue=self.row(),
            job=self.job(1, "failed"),
            data=payload(data, Redactor(["card"]), "data"),
            result=payload({"ok": True, "text": self.say("charged")}, OPEN, "result"),
            reason=self.say("TimeoutError: payment service did not answer in 10 s\nwhile charging"),
            stack=self.say('Traceback (most recent call last):\n  File "app.py", line 3, in charge\nTimeoutError'),
            logs=[LogRow(at=ago(12), text=self.say("charging the card")), LogRow(at=ago(2), text=self.say("retrying"))],
            blocks_since=ago(186.8),
            headers={self.say("traceparent"): self.say("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")},
            timeline=[
                Step(kind="delayed", label="Added", at=ago(300), seconds=60.0, detail=""),
                Step(kind="waiting", label="Due", at=ago(240), seconds=3.2, detail=""),
                Step(kind="running", label="Attempt 1", at=ago(236.8), seconds=10.0, detail=self.say("web-1:4711")),
                Step(kind="retrying", label="Waited to retry", at=ago(226.8), seconds=30.0, detail=""),
                Step(kind="running", label="Attempt 2", at=ago(196.8), seconds=10.0, detail=self.say("web-2:99")),
                Step(kind="failed", label="Failed", at=ago(186.8), seconds=None, detail=""),
            ],
            attempts=[
                AttemptRow(
                    number=n,
                    outcome=outcome,
                    error=self.say("httpx.ReadTimeout"),
                    reason=self.say("did not answer"),
                    stack=self.say("Traceback (most recent call last):\n  ..."),
                    worker=self.say("web-1:4711"),
                    started_at=ago(236.8 - 40 * n),
                    ended_at=ago(226.8 - 40 * n),
                    seconds=10.0,
                )
                for n, outcome in ((1, "retried"), (2, "failed"))
            ],
            attempts_words="2 of 5",
            position=PositionInGroup(position=4, of=38, group_id=self.say("user:42")),
            lane=self.lane(0),
            settings=[JobSetting(name="Priority", value="0"), JobSetting(name="Timeout", value="30 s")],
            actions=[
                ActionLink(action="retry", label="Retry", danger=False, params={"job": self.say("01jx000001")}),
                ActionLink(action="remove", label="Remove", danger=True, params={"job": self.say("01jx000001")}),
            ],
        )

    def failures(self) -> FailuresPage:
        rows = [
            FailureRow(
                error_class=self.say(name),
                shape=self.say(shape),
                count=count,
                first=ago(7200),
                last=ago(30),
                sample_job_id=self.say("01jx000001"),
                series=[(i * count) % 9 for i in range(24)],
                q=f"error:{name}",
            )
            for name, shape, count in (
                ("httpx.ReadTimeout", "payment service did not answer in # s", 812),
                ("app.errors.CardDeclined", "card '…' declined: #", 44),
                ("KeyError", "'…'", 3),
            )
        ]
        return FailuresPage(queue=self.row(), groups=rows, scanned=859, total=859, complete=True)

    def repeats(self) -> RepeatsPage:
        row = RepeatRow(
            key=self.say("nightly-report"),
            group_id=self.say("reports"),
            schedule="cron 0 9 * * 1-5 (Europe/Stockholm)",
            words="At 09:00 on every day-of-week from Monday through Friday",
            zone="Europe/Stockholm",
            next_run=NOW + timedelta(hours=3),
            next_runs=[NOW + timedelta(hours=3 + 24 * i) for i in range(3)],
            last_run=ago(75_000),
            count=41,
            limit=None,
            end=None,
            preview=self.say('{"report": "sales"}'),
        )
        every = replace(row, key=self.say("ping"), schedule="every 5 s", words="every 5 seconds", zone=None, limit=100)
        return RepeatsPage(queue=self.row(), repeats=[row, every], total=2)

    def workers(self) -> WorkersPage:
        def worker(n: int, **changes: Any) -> WorkerRow:
            found = WorkerRow(
                id=self.say(f"web-{n}:4711"),
                name=self.say(f"orders-web-{n}"),
                host=self.say(f"web-{n}.example"),
                pid=4711,
                version="1.4.0",
                concurrency=8,
                busy=3,
                use=3 / 8,
                jobs=[self.job(n * 3 + i, "active") for i in range(3)],
                more_jobs=0,
                last_seen=ago(2),
                late=False,
                blocked=0.0,
            )
            return replace(found, **changes)

        return WorkersPage(
            queue=self.row(),
            workers=[worker(1), worker(2, late=True, last_seen=ago(31)), worker(3, blocked=4.2, more_jobs=5)],
            turn=TurnRow(worker=self.say("web-1:4711"), epoch=12, expires_in=3.0, taken=4),
            orphans=[self.job(77, "active")],
        )

    def events(self) -> EventsPage:
        rows = [
            EventRow(
                id=f"{i}-0/{i}/0",
                kind=KINDS[i % len(KINDS)],
                job_id=self.say(f"01jx{i:06x}"),
                group_id=self.say(f"user:{i % 5}"),
                at=ago(i * 0.7),
                attempt=1,
                worker=self.say("web-1:4711"),
                delay=0.5,
                reason=self.say("TimeoutError"),
                final=None,
                progress=None,
                text=self.say("attempt 1 started on web-1:4711"),
            )
            for i in range(40)
        ]
        kinds = [Choice(value="", label="All", current=True), *choices(KINDS, "")]
        return EventsPage(
            queue=self.row(),
            kinds=kinds,
            kind="",
            group="",
            job="",
            events=rows,
            missed=True,
            written=True,
            position=rows[0].id,
        )

    def settings(self) -> SettingsPage:
        findings = [
            FindingRow(name="eviction", status="ok", detail="noeviction", hint=""),
            FindingRow(
                name="persistence", status="warn", detail="nothing is written to disk", hint="Turn on appendonly."
            ),
            FindingRow(name="workers", status="fail", detail="nobody works on it", hint="Start a worker."),
        ]
        return SettingsPage(
            queue=self.row(),
            settings=[
                Setting(
                    name="job_timeout", value="30 s", words="a job whose worker is silent for this long is taken back"
                ),
                Setting(name="fairness", value=self.say("oldest"), words="which group is next"),
            ],
            server=self.server(),
            findings=findings,
            status="fail",
        )

    def task_page(self) -> TaskPage:
        return TaskPage(queue="orders", task=self.task())

    def tasks(self) -> TasksPage:
        return TasksPage(queue="orders", tasks=[self.task(), self.task("done"), self.task("failed")])

    def plan(self) -> PlanPage:
        return PlanPage(
            queue="orders",
            action="retry-matching",
            title=self.say("Retry failed jobs"),
            button="Retry them",
            danger=False,
            bulk=True,
            jobs=812,
            effects=[self.say("812 failed jobs matching error:ReadTimeout will run again, oldest first.")],
            order=self.say("Each job goes back to its original position in its group (44 groups)."),
            refused=None,
            fields=[
                field("q", "Search", value=self.say("error:ReadTimeout"), hint="error:, group:"),
                field("rate", "Jobs per second", kind="number", hint="empty = as fast as it goes"),
                field("data", "Data", kind="json", value=self.say('{"n": 1}'), required=True, error="not JSON"),
                field(
                    "state", "State", kind="select", value="failed", options=choices(("failed", "completed"), "failed")
                ),
            ],
            hidden={"job": self.say("01jx000001")},
            sample=[self.job(1, "failed"), self.job(2, "failed")],
            review="",
            edit=True,
            back="/queues/orders",
        )

    def outcome(self) -> OutcomePage:
        return OutcomePage(
            queue="orders",
            action="retry-matching",
            ok=True,
            level="done",
            text=self.say("Retrying has begun."),
            count=None,
            task=self.task(),
            back="/queues/orders",
        )

    def of(self, name: str) -> Any:
        found = {"job": self.job_page, "task": self.task_page}.get(name) or getattr(self, name)
        return found()


def serve(port: int) -> None:
    """Serve every page from the samples."""
    import uvicorn

    from groupmq.dashboard import pages
    from groupmq.dashboard.actions.catalogue import ACTIONS
    from groupmq.dashboard.app import create_app
    from groupmq.dashboard.catalogue import Catalogue
    from groupmq.dashboard.endpoints import action as actions
    from groupmq.dashboard.visit import Heading, Visit

    class Stub:
        def __init__(self, name: str) -> None:
            self.name = name

    async def names(self: Catalogue) -> list[str]:
        return ["orders", "emails", "reports"]

    async def opened(self: Catalogue, name: str) -> Any:
        return Stub(name)

    def builder(name: str) -> Any:
        async def build(view: Any, query: Any) -> Any:
            return Samples().of(name)

        return build

    for name, page in pages.PAGES.items():
        pages.PAGES[name] = replace(page, build=builder(name))

    async def plan(visit: Visit, view: Any, action: Any, given: Any, problem: Any = None) -> Any:
        return await visit.answer(Samples().plan(), Heading(name="plan", title=action.title, queue="orders"))

    Catalogue.names, Catalogue.open = names, opened  # type: ignore[method-assign]
    actions.answer_plan = plan
    print(f"samples: http://127.0.0.1:{port}/   ({', '.join(ACTIONS)})")
    uvicorn.run(create_app(), host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    serve(int(sys.argv[1]) if len(sys.argv) > 1 else 8765)
