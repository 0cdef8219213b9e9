"""Ids, groups, data and errors are shown as text everywhere, whatever they contain."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from groupmq import FailJob, Job, Queue, Worker
from groupmq.dashboard import paths
from groupmq.dashboard.layout import layout
from groupmq.dashboard.pages import PAGES
from groupmq.dashboard.rendering import Renderer, context
from tests.conftest import MakeQueue
from tests.dashboard.conftest import MakeSite
from tests.dashboard.sample_rows import HOSTILE
from tests.dashboard.samples import Samples
from tests.dashboard.visitor import Site
from tests.support.waiting import eventually

TEMPLATES = [*PAGES, "plan", "outcome"]
ALLOWED = {"script", "link", "meta", "title"}


class Tags(HTMLParser):
    """The elements and attributes that a browser would make of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))


def tags_of(html: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = Tags()
    parser.feed(html)
    return parser.tags


def assert_harmless(html: str) -> None:
    """Check that no element and no attribute comes from data."""
    for tag, attributes in tags_of(html):
        assert tag != "img", html[:200]
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        if tag == "script":
            assert (attributes.get("src") or "").startswith("/static/") or attributes.get("type") == "application/json"
        for name in ("href", "src", "action", "hx-get", "hx-post"):
            value = attributes.get(name)
            assert value is None or value.startswith(("/", "#", "?", "data:image/svg")), (name, value)
    assert "49" not in re.findall(r"\{\{7\*7\}\}|\b49\b(?=\{%)", html)


def render(name: str, document: Any) -> str:
    around = layout(base="", name=name, title=HOSTILE, user=HOSTILE, queue="orders", display_name=HOSTILE)
    values = context(
        document, name=name, layout=around, csrf="token", read_only=False, can=lambda action: True, here="/"
    )
    return Renderer().render(name, None, values)


@pytest.mark.parametrize("name", [name for name in TEMPLATES if name != "suggest"])
def test_a_template_makes_text_of_everything(name: str) -> None:
    html = render(name, Samples(HOSTILE).of(name))
    assert "onerror=alert" in html  # the page shows it as text
    assert_harmless(html)


@pytest.mark.parametrize("name", [name for name in TEMPLATES if name != "suggest"])
def test_a_template_renders_its_sample(name: str) -> None:
    assert "<!doctype html>" in render(name, Samples().of(name))


GROUPS = [
    HOSTILE.replace("\x00", ""),
    "../../etc",
    "..",
    "a/b?c#d",
    "%2e%2e%2f",
    "ä 日本 🎉",
    " ",
    "\\\\host",
    "javascript:x",
]


async def hostile(queue: Queue, group: str) -> dict[str, str]:
    """A failed, a completed and a waiting job whose every text is hostile."""

    async def handle(job: Job) -> Any:
        await job.log(HOSTILE)
        await job.report_progress(HOSTILE)
        if job.data["fail"]:
            raise FailJob(HOSTILE)
        return {HOSTILE: HOSTILE}

    ids = {}
    for name in ("completed", "failed"):
        ids[name] = group + name
        await queue.add({"fail": name == "failed", HOSTILE: HOSTILE}, group_id=group, job_id=ids[name])
    worker = Worker(queue, handle, name=HOSTILE.replace("\x00", "")[:60])
    async with worker:
        await eventually(lambda: _ended(queue), "both jobs have ended")
    ids["waiting"] = (await queue.add({HOSTILE: [HOSTILE]}, group_id=group, job_id=group + "waiting")).id
    return ids


async def _ended(queue: Queue) -> bool:
    counts = await queue.get_job_counts()
    return (counts.completed, counts.failed) == (1, 1)


@pytest.mark.parametrize("group", GROUPS, ids=range(len(GROUPS)))
async def test_every_page_of_a_hostile_queue(make_queue: MakeQueue, make_site: MakeSite, group: str) -> None:
    queue = make_queue("hostile")
    ids = await hostile(queue, group)
    site: Site = make_site(display_names={"hostile": HOSTILE}, descriptions={"hostile": HOSTILE})
    await queue.mark(HOSTILE.replace("\x00", "")[:100])
    for name in PAGES:
        if name in ("task", "suggest"):
            continue
        for job_id in ids.values() if name == "job" else [""]:
            html = await site.page(name, queue="hostile", group=group, job=job_id)
            assert_harmless(html)
    for job_id in ids.values():
        page = await site.json("job", queue="hostile", job=job_id)
        assert (page["job"]["id"], page["job"]["group_id"]) == (job_id, group)
    found = await site.json("lanes", queue="hostile")
    assert [lane["group_id"] for lane in found["lanes"]] == [group]
    assert (await site.json("group", queue="hostile", group=group))["jobs"][0]["id"] == ids["waiting"]
    acts: list[tuple[str, dict[str, Any]]] = [("retry", {"job": ids["failed"]}), ("pause-group", {"group": group})]
    for action, fields in acts:
        assert_harmless(await site.page("action", queue="hostile", action=action, **fields))
        await site.act(action, queue="hostile", **fields)


@pytest.mark.parametrize("raw", [b"\x80\x04\x95pickle", b"", b"{", b"\xff\xfe", b'{"a": NaN}', b"[" * 5000])
async def test_data_of_another_serializer(make_queue: MakeQueue, site: Site, raw: bytes) -> None:
    class Foreign:
        def encode(self, value: Any, /) -> bytes:
            return raw

        def decode(self, data: bytes, /) -> Any:
            return data

    queue = make_queue("foreign", serializer=Foreign())
    job = await queue.add({}, group_id="g")
    for name in PAGES:
        if name not in ("task", "suggest"):
            await site.page(name, queue="foreign", group="g", job=job.id)
    page = await site.json("job", queue="foreign", job=job.id)
    assert page["data"]["unreadable"] or raw == b'{"a": NaN}'


async def test_an_odd_address_is_an_error_page_and_no_more(make_queue: MakeQueue, site: Site) -> None:
    await make_queue("orders").add({})
    odd = [
        "/queues/~!!",
        "/queues/orders/jobs/~_w",
        "/queues/%00",
        "/queues/orders/groups/%ff",
        "/queues/" + "x" * 3000,
    ]
    odd += [f"/queues/{paths.segment(name)}" for name in (HOSTILE, "{orders}", "a:b*?", "")]
    for path in odd:
        answer = await site.get(path)
        assert answer.status_code in (400, 404) or "/groups/" in path, path
        assert_harmless(answer.text)
