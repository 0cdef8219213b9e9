"""The attempts on the page of a job, in every state of its life."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from groupmq import Backoff, Job, Queue, Worker
from groupmq.dashboard.documents.job import backoff_words
from tests.conftest import MakeQueue
from tests.dashboard.busy import Busy
from tests.dashboard.conftest import MakeSite
from tests.dashboard.visitor import Site
from tests.support.waiting import eventually

EARLIER = 20


class Life:
    """A queue on which jobs have run before, so that a fence is not a small number."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.hold = asyncio.Event()
        self.worker = Worker(queue, self.handle, concurrency=4)

    async def handle(self, job: Job) -> Any:
        if job.data == "hold":
            await self.hold.wait()
        if job.data == "fail":
            raise ValueError("it went wrong")

    async def is_so(self, job: Job, state: str, attempts: int) -> None:
        async def found() -> bool:
            now = await self.queue.require_job(job.id)
            return (now.state, now.attempts_made) == (state, attempts)

        await eventually(found, f"the job is {state} after {attempts} attempts")


@pytest.fixture(params=[None, 3], ids=["default attempts", "its own attempts"])
def own(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Arguments of add: the number of attempts is the default of worker and queue, or the job's own."""
    return {} if request.param is None else {"max_attempts": request.param}


@pytest.fixture
async def life(make_queue: MakeQueue) -> AsyncIterator[Life]:
    life = Life(make_queue("orders", max_attempts=3, backoff=0.001))
    for _ in range(EARLIER):
        await life.queue.add("ok")
    await life.worker.start()

    async def over() -> bool:
        return (await life.queue.get_job_counts()).completed == EARLIER

    await eventually(over, "earlier jobs have run")
    yield life
    life.hold.set()
    await life.worker.close()


class Seen:
    """The text of a job's page, as a reader sees it."""

    def __init__(self, page: str, job: Job) -> None:
        facts = re.search(r'<dl class="facts">(.*?)</dl>', page, re.DOTALL)
        assert facts is not None
        pairs = re.findall(r"<dt[^>]*>(.*?)</dt><dd[^>]*>(.*?)</dd>", facts[1], re.DOTALL)
        self.facts = {text_of(name): text_of(value) for name, value in pairs}
        card = re.search(r'aria-label="Attempts"><header>(.*?)</header>(.*?)</section>', page, re.DOTALL)
        assert card is not None
        self.head = text_of(card[1]).removeprefix("Attempts").strip()
        self.attempts = [text_of(one) for one in re.findall(r">(Attempt \d+)</span>", card[2])]
        self.steps = [text_of(one) for one in re.findall(r'<span class="name">(.*?)</span>', page)]
        timeline = re.search(r'<ol class="steps">(.*?)</ol>', page, re.DOTALL)
        assert timeline is not None
        self.timeline = text_of(timeline[1])
        whole = text_of(page)
        assert "None" not in whole
        fence = self.facts.pop("Fence", None)
        assert whole.count(fence or "\0") <= 1, "the fence must be in its own row only"
        assert self.facts["Attempts"] == self.head
        assert all(int(number) <= EARLIER for number in re.findall(r"\d+", self.head))


def text_of(page: str) -> str:
    shown = re.sub(r"<(script|style|svg)\b.*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", shown)).split())


async def seen(site: Site, job: Job) -> Seen:
    found = await site.json("job", queue="orders", job=job.id)
    assert found["job"]["attempts_made"] <= EARLIER
    return Seen(await site.page("job", queue="orders", job=job.id), job)


async def test_a_fresh_job(life: Life, site: Site, own: dict[str, Any]) -> None:
    await life.queue.pause()
    page = await seen(site, await life.queue.add("ok", **own))
    assert page.head == "none of 3 yet"
    assert page.attempts == []
    assert page.steps == ["Added", "Attempt 1"]
    assert "not yet" in page.timeline


async def test_a_running_job(life: Life, site: Site, own: dict[str, Any]) -> None:
    job = await life.queue.add("hold", **own)
    await life.is_so(job, "active", 0)
    page = await seen(site, job)
    assert page.head == "attempt 1 of 3 is running"
    assert page.attempts == ["Attempt 1"]
    assert page.steps == ["Added", "Attempt 1", "End"]
    assert page.timeline.endswith("End not yet")


async def test_a_job_that_waits_for_its_next_attempt(life: Life, site: Site, own: dict[str, Any]) -> None:
    job = await life.queue.add("fail", group_id="g", backoff=600, **own)
    await life.is_so(job, "waiting", 1)
    page = await seen(site, job)
    assert page.head == "1 of 3"
    assert page.attempts == ["Attempt 1"]
    assert page.steps == ["Added", "Attempt 1", "Waits to retry", "Attempt 2"]
    assert page.timeline.endswith("at the earliest")
    assert "Next attempt" in page.facts
    assert page.facts["Back-off"] == "600 s"


async def test_a_failed_job(life: Life, site: Site, own: dict[str, Any]) -> None:
    job = await life.queue.add("fail", **own)
    await life.is_so(job, "failed", 3)
    page = await seen(site, job)
    assert page.head == "3 of 3"
    assert page.attempts == ["Attempt 3", "Attempt 2", "Attempt 1"]
    again = "Waited to retry"
    assert page.steps == ["Added", "Attempt 1", again, "Attempt 2", again, "Attempt 3", "Failed"]


async def test_a_job_that_was_retried_by_hand(life: Life, site: Site, own: dict[str, Any]) -> None:
    job = await life.queue.add("fail", **own)
    await life.is_so(job, "failed", 3)
    await life.queue.pause()
    await life.queue.retry(job.id)
    page = await seen(site, job)
    assert page.head == "none of 3 yet"
    assert page.attempts == ["Attempt 3", "Attempt 2", "Attempt 1"]
    assert page.steps[-3:] == ["Attempt 3", "Failed; then retried by hand", "Attempt 1"]
    await life.queue.resume()
    await life.is_so(job, "failed", 3)
    page = await seen(site, job)
    assert page.head == "3 of 3"
    assert page.attempts == ["Attempt 3", "Attempt 2", "Attempt 1"] * 2
    assert page.steps.count("Failed; then retried by hand") == 1
    assert page.steps[-1] == "Failed"


async def test_a_queue_of_the_host_app_knows_the_number(life: Life, make_site: MakeSite) -> None:
    job = await life.queue.add("hold")
    await life.is_so(job, "active", 0)
    assert (await seen(make_site(life.queue), job)).head == "attempt 1 of 3 is running"


def test_a_backoff_in_words() -> None:
    assert backoff_words(Backoff.fixed(30)) == "30 s"
    grows = Backoff.exponential(base=0.5, factor=2, max=30, jitter=0.25)
    assert backoff_words(grows) == "0.5 s, then 2 times as long each time, at most 30 s, up to 25% longer by chance"


async def test_the_last_step_of_a_job_that_has_not_ended_says_for_how_long(busy: Busy, site: Site) -> None:
    for name, said in (("waiting", "has waited for"), ("delayed", "has waited for"), ("active", "has run for")):
        assert said in await site.page("job", queue="orders", job=busy.ids[name]), name
    for name in ("completed", "failed"):
        assert '<span class="took">has ' not in await site.page("job", queue="orders", job=busy.ids[name]), name
