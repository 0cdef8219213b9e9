"""The page `settings`: what is stored with the queue, and how healthy it is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from groupmq.dashboard.documents.page import Page, QueueQuery
from groupmq.dashboard.documents.payload import clean
from groupmq.dashboard.documents.queue_row import LOOK, QueueRow
from groupmq.dashboard.documents.record import record
from groupmq.dashboard.documents.server import Server, server
from groupmq.dashboard.documents.view import View
from groupmq.wording import setting as spelled

if TYPE_CHECKING:
    from groupmq import QueueSettings

WORDS = {
    "job_timeout": "a job whose worker is silent for this long is taken back",
    "max_attempts": "attempts of a job that sets none",
    "backoff": "pause before the next attempt",
    "on_retry": "hold: a job that waits for its next attempt holds its group; yield: the group goes on",
    "on_failed": "hold: a job that failed for good blocks its group until somebody resolves it; continue: it does not",
    "breaker": "how many attempts of a group may fail in a row, and how long the group then rests",
    "ordering": "what decides the order inside a group",
    "fairness": "which group comes next when several could start",
    "group_concurrency": "how many jobs of one group may run at once",
    "exclusive": "whether only one worker at a time takes jobs",
    "rate_limit": "how many jobs the whole queue may start in a period",
    "group_rate_limit": "how many jobs each group may start in a period",
    "max_group_size": "how many unfinished jobs a group may have",
    "priority_ageing": "how long a job waits to count as one priority higher",
    "partitions": "over how many hash tags, and so primaries of a cluster, the groups are spread",
    "events": "whether events are written",
    "keep_completed": "how many completed jobs are kept, and for how long",
    "keep_failed": "how many failed jobs are kept, and for how long",
}
_ORDER = ("ok", "warn", "fail")


@record
class Setting:
    name: str
    value: str
    words: str


@record
class FindingRow:
    name: str
    status: str
    """ok, warn or fail."""
    detail: str
    hint: str


@record
class SettingsPage:
    queue: QueueRow
    settings: list[Setting]
    server: Server | None
    findings: list[FindingRow]
    """The findings of `groupmq check`."""
    status: str
    """The worst of them."""


async def build(view: View, query: QueueQuery) -> SettingsPage:
    row, settings, findings, info = await asyncio.gather(
        view.row(), view.queue.get_settings(), view.queue.check(look=LOOK), view.shared.server_info()
    )
    rows = [FindingRow(name=one.name, status=one.status, detail=one.detail, hint=one.hint or "") for one in findings]
    return SettingsPage(
        queue=row,
        settings=[
            *setting_rows(settings, settings.names()),
            *(
                Setting(name=name, value=shown(value), words="stored by a newer release of groupmq")
                for name, value in settings.unknown.items()
            ),
        ],
        server=server(info),
        findings=rows,
        status=max((one.status for one in rows), key=_ORDER.index, default="ok"),
    )


def setting_rows(settings: QueueSettings, names: Iterable[str]) -> list[Setting]:
    """Some of the settings, as `groupmq queue settings` spells them."""
    return [
        Setting(name=name, value=spelled(name, getattr(settings, name)), words=WORDS.get(name, "")) for name in names
    ]


def shown(value: Any) -> str:
    """A value that a newer release stored, in one line."""
    return value if isinstance(value, str) else json.dumps(clean(value), ensure_ascii=False)


PAGE = Page("settings", "Settings", QueueQuery, SettingsPage, build, "The settings of the queue, and its health.")
