"""Each page, as HTML and as JSON, of a queue with everything that a page can show."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from groupmq import Queue, RateLimit
from groupmq.dashboard.pages import PAGES
from tests.conftest import MakeQueue
from tests.dashboard.busy import DEEP, HELD, PAUSED, RUNNING, Busy
from tests.dashboard.visitor import Site
from tests.support.waiting import eventually

QUEUE_PAGES = [name for name in PAGES if name not in ("queues", "group", "job", "task", "suggest")]


async def test_queues_in_rows(busy: Busy, site: Site) -> None:
    page = await site.json("queues")
    assert [row["name"] for row in page["queues"]] == ["orders"]
    row = page["queues"][0]
    counts = row["counts"]
    assert {state: counts[state] for state in ("active", "completed", "failed")} == dict.fromkeys(
        ("active", "completed", "failed"), 1
    )
    assert row["workers"] == 1
    assert row["slots"] == 4
    assert len(row["sparkline"]) == 60
    assert sum(row["sparkline"]) == 1
    assert row["error"] is None
    assert page["server"]["version"]
    html = await site.page("queues")
    assert "orders" in html


async def test_a_server_without_queues(site: Site) -> None:
    assert (await site.json("queues"))["queues"] == []
    assert "groupmq" in await site.page("queues")


async def test_a_queue_nobody_works_on_is_a_warning(queue: Queue, site: Site) -> None:
    await queue.add({})
    (row,) = (await site.json("queues"))["queues"]
    assert [warning["text"] for warning in row["warnings"]] == ["This queue has no worker."]


async def test_only_the_queues_that_were_named_are_shown(make_queue: MakeQueue, make_site: Any) -> None:
    for name in ("orders", "emails", "secret"):
        await make_queue(name).add({})
    site = make_site(
        "orders", make_queue("emails"), display_names={"orders": "Orders!"}, descriptions={"emails": "Mail"}
    )
    page = await site.json("queues")
    assert [row["name"] for row in page["queues"]] == ["orders", "emails"]
    assert page["queues"][0]["display_name"] == "Orders!"
    assert page["queues"][1]["description"] == "Mail"
    await site.json("queue", 404, queue="secret")


async def test_a_queue_over_time(busy: Busy, site: Site) -> None:
    page = await site.json("queue", queue="orders")
    assert page["totals"] == {"completed": 1, "failed": 1, "retried": 1, "stalled": 0, "rate_limited": 0}
    assert len({len(column) for column in page["series"].values()}) == 1
    assert len(page["series"]["at"]) == 60
    assert page["run"]["count"] == 3
    assert [mark["label"] for mark in page["marks"]] == ["v1.4"]


@pytest.mark.parametrize(("name", "points"), [("hour", 60), ("day", 288), ("weeks", 336)])
async def test_ranges_of_time(queue: Queue, site: Site, name: str, points: int) -> None:
    await queue.add({})
    page = await site.json("queue", queue=queue.name, range=name)
    assert abs(len(page["series"]["at"]) - points) <= 1


@pytest.mark.parametrize("state", ["waiting", "active", "delayed", "failed", "completed"])
async def test_jobs_of_a_state(busy: Busy, site: Site, state: str) -> None:
    page = await site.json("jobs", queue="orders", state=state)
    assert {job["state"] for job in page["jobs"]} == {state}
    wanted = {name: job_id for name, job_id in busy.ids.items() if name == state}
    assert set(wanted.values()) <= {job["id"] for job in page["jobs"]}
    html = await site.page("jobs", queue="orders", state=state)
    assert wanted[state] in html


async def test_jobs_come_page_by_page(queue: Queue, site: Site) -> None:
    added = [job.id for job in await queue.add_many([{"data": n, "group_id": f"g{n % 3}"} for n in range(25)])]
    seen: list[str] = []
    cursor: str | None = None
    for _ in range(9):
        page = await site.json("jobs", queue=queue.name, state="waiting", limit=10, cursor=cursor)
        seen += [job["id"] for job in page["jobs"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert cursor is None
    assert sorted(seen) == sorted(added)


@pytest.mark.parametrize(
    ("line", "state", "found"),
    [
        (f"group:{HELD}", "waiting", ["held", "behind", "behind2"]),
        ("error:FailJob", "failed", ["failed"]),
        ("error:KeyError", "failed", []),
        ("data:999", "delayed", ["delayed"]),
        ("hunter2", "completed", ["completed"]),
        ("older:1h", "failed", []),
        ("newer:1h", "failed", ["failed"]),
    ],
)
async def test_a_search_finds_jobs_and_says_what_it_scanned(
    busy: Busy, site: Site, line: str, state: str, found: list[str]
) -> None:
    page = await site.json("jobs", queue="orders", state=state, q=line)
    assert {job["id"] for job in page["jobs"]} == {busy.ids[name] for name in found}
    assert page["scanned"] >= len(found)
    assert not page["search"]["problems"]


async def test_a_search_that_is_not_understood_says_so(busy: Busy, site: Site) -> None:
    page = await site.json("jobs", queue="orders", q="older:soon")
    assert page["search"]["problems"] == ["older:soon: 'soon' is not a duration; for example older:10m"]


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("gr", "group:"),
        (f"group:{HELD[:6]}", f"group:{HELD} "),
        ("worker:we", "worker:web-1 "),
        ("older:1", "older:10m "),
    ],
)
async def test_suggestions(busy: Busy, site: Site, typed: str, text: str) -> None:
    found = await site.json("suggest", queue="orders", q=typed)
    assert text in [one["text"] for one in found["suggestions"]]


async def test_lanes_show_order_and_what_holds_a_group(busy: Busy, site: Site) -> None:
    page = await site.json("lanes", queue="orders")
    lanes = {lane["group_id"]: lane for lane in page["lanes"]}
    held = lanes[HELD]["held"]
    assert held["reason"] == "backoff"
    assert held["job_id"] == busy.ids["held"]
    assert held["attempt"] == 1
    assert held["until"] is not None
    assert [job["id"] for job in lanes[HELD]["next"]] == [busy.ids[name] for name in ("held", "behind", "behind2")]
    assert lanes[PAUSED]["paused"]
    assert lanes[PAUSED]["held"]["reason"] == "paused"
    (running,) = lanes[RUNNING]["running"]
    assert running["id"] == busy.ids["active"]
    assert running["progress"]["fraction"] == 0.25
    assert 0 <= running["elapsed"] < 60
    assert page["complete"]


async def test_a_lane_shows_the_state_of_its_group_in_the_words_of_the_glossary(busy: Busy, site: Site) -> None:
    html = await site.page("lanes", queue="orders")
    shown = {
        group: re.search(rf'title="{group}">.*?<span class="state [^"]*"><svg.*?</svg>(.*?)</span>', html, re.DOTALL)
        for group in (HELD, PAUSED, RUNNING)
    }
    words = {group: found and found[1] for group, found in shown.items()}
    assert words == {HELD: "parked", PAUSED: "paused", RUNNING: "busy"}


@pytest.mark.parametrize("sort", ["held", "oldest", "deepest", "busiest", "name"])
async def test_lanes_in_each_order(busy: Busy, site: Site, sort: str) -> None:
    page = await site.json("lanes", queue="orders", sort=sort)
    groups = [lane["group_id"] for lane in page["lanes"]]
    assert len(groups) == len(set(groups)) == page["total"]
    if sort == "deepest":
        assert groups[0] == HELD
    if sort == "name":
        assert groups == sorted(groups)


async def test_lanes_that_match(busy: Busy, site: Site) -> None:
    page = await site.json("lanes", queue="orders", match="paus")
    assert [lane["group_id"] for lane in page["lanes"]] == [PAUSED]


async def test_lanes_that_are_not_shown_are_counted_and_can_be_shown(queue: Queue, site: Site) -> None:
    await queue.add_many([{"data": n, "group_id": f"user:{n}"} for n in range(60)])
    page = await site.json("lanes", queue=queue.name)
    assert (page["shown"], page["rest"], page["total"]) == (50, 10, 60)
    html = await site.page("lanes", queue=queue.name)
    assert f'href="/queues/{queue.name}/lanes?sort=held&amp;limit=200"' in html
    assert "10 are not shown" in html
    html = await site.page("lanes", queue=queue.name, limit=200)
    assert "not shown" not in html
    assert "limit=200" not in html


async def test_a_group_in_order(busy: Busy, site: Site) -> None:
    page = await site.json("group", queue="orders", group=HELD)
    assert [job["id"] for job in page["jobs"]] == [busy.ids[name] for name in ("held", "behind", "behind2")]
    assert page["first"]["id"] == busy.ids["held"]
    assert page["lane"]["held"]["reason"] == "backoff"
    assert page["settings"] == {"paused": False, "concurrency": 1, "rate_limit": None}
    deep = await site.json("group", queue="orders", group=DEEP)
    assert [job["state"] for job in deep["jobs"]] == ["delayed"]
    html = await site.page("group", queue="orders", group=HELD)
    assert html.index(busy.ids["held"]) < html.index(busy.ids["behind"]) < html.index(busy.ids["behind2"])


async def test_a_group_that_is_not_there(busy: Busy, site: Site) -> None:
    page = await site.json("group", queue="orders", group="nobody")
    assert not page["exists"]
    assert "nobody" in await site.page("group", queue="orders", group="nobody")


async def test_a_job_in_full(busy: Busy, site: Site) -> None:
    page = await site.json("job", queue="orders", job=busy.ids["completed"])
    assert page["data"]["value"] == {"how": "complete", "password": "hunter2", "amount": 999} | {"how": "complete"}
    assert page["result"]["value"] == {"ok": True, "password": "hunter2"}
    assert [line["text"] for line in page["logs"]] == ["password=hunter2 was used"]
    assert page["timeline"][0]["label"] == "Added"
    assert page["timeline"][-1]["kind"] == "completed"
    assert [action["action"] for action in page["actions"]] == ["remove"]


async def test_the_page_of_a_failed_job_shows_its_attempts(busy: Busy, site: Site) -> None:
    page = await site.json("job", queue="orders", job=busy.ids["failed"])
    assert page["reason"] == "password=hunter2 is wrong"
    (attempt,) = page["attempts"]
    assert attempt["outcome"] == "failed"
    assert attempt["error"].endswith("FailJob")
    assert "FailJob" in attempt["stack"]
    assert attempt["worker"]
    assert [action["action"] for action in page["actions"]] == ["retry", "edit", "remove"]


async def test_a_job_knows_its_position_in_its_group(busy: Busy, site: Site) -> None:
    page = await site.json("job", queue="orders", job=busy.ids["behind2"])
    assert page["position"] == {"position": 3, "of": 3, "group_id": HELD}


async def test_a_job_that_is_gone(busy: Busy, site: Site) -> None:
    page = await site.json("job", 404, queue="orders", job="nothing")
    assert page["title"] == "No such job"


async def test_repeats_with_their_next_runs(busy: Busy, site: Site) -> None:
    page = await site.json("repeats", queue="orders")
    rows = {row["key"]: row for row in page["repeats"]}
    assert rows["hourly"]["words"] == "Every hour"
    assert len(rows["hourly"]["next_runs"]) == 3
    assert rows["morning"]["zone"] == "Europe/Stockholm"
    assert rows["morning"]["next_runs"][0] == rows["morning"]["next_run"]
    assert "Europe/Stockholm" in await site.page("repeats", queue="orders")


async def test_workers_and_what_they_run(busy: Busy, site: Site) -> None:
    await eventually(busy.queue.get_workers, "the worker is registered")
    page = await site.json("workers", queue="orders")
    (worker,) = page["workers"]
    assert worker["name"] == "web-1"
    assert worker["concurrency"] == 4
    assert [job["id"] for job in worker["jobs"]] == [busy.ids["active"]]
    assert page["orphans"] == []


async def test_settings_and_health(busy: Busy, site: Site) -> None:
    page = await site.json("settings", queue="orders")
    assert {"fairness", "events", "group_concurrency"} <= {setting["name"] for setting in page["settings"]}
    assert {finding["status"] for finding in page["findings"]} <= {"ok", "warn", "fail"}
    assert page["findings"]


async def test_the_page_of_a_queue_says_what_limits_it_and_how_often_its_jobs_are_tried(
    make_queue: MakeQueue, site: Site
) -> None:
    queue = make_queue("orders", max_attempts=5, rate_limit=RateLimit(100, per=1.0), group_concurrency=2)
    job = await queue.add({})
    page = await site.json("queue", queue="orders")
    limits = {setting["name"]: setting["value"] for setting in page["limits"]}
    assert (limits["rate_limit"], limits["group_concurrency"], limits["max_attempts"]) == ("100/1s", "2", "5")
    assert limits["keep_failed"] == "10000,30d"
    html = await site.page("queue", queue="orders")
    assert "100/1s" in html
    assert "none of 5 yet" in await site.page("job", queue="orders", job=job.id)
    await make_queue("orders").reconfigure(max_attempts=6)
    assert "none of 6 yet" in await site.page("job", queue="orders", job=job.id)
    settings = (await site.json("settings", queue="orders"))["settings"]
    assert {"name": "max_attempts", "value": "6", "words": "attempts of a job that sets none"} in settings


@pytest.mark.parametrize("name", QUEUE_PAGES)
async def test_every_page_of_a_queue_is_html_and_json_and_a_fragment(busy: Busy, site: Site, name: str) -> None:
    html = await site.page(name, queue="orders")
    assert html.startswith("<!doctype html>")
    assert "<title>" in html
    part = await site.get(site.at(name, queue="orders"), X_Fragment="rows" if name == "events" else "live")
    assert part.status_code == 200
    assert "<html" not in part.text
    by_accept = await site.json(name, queue="orders")
    by_path = await site.client.get("/api/v1" + site.at(name, queue="orders"))
    assert by_path.status_code == 200
    assert set(by_accept) == set(by_path.json())


HELP = {
    "queue": "no group is held",
    "lanes": "No group has jobs",
    "jobs": "Every job that may start has started.",
    "failures": "No failures",
    "repeats": "Nothing repeats",
    "workers": "Jobs wait until a worker starts.",
    "events": "No events yet",
    "settings": "max_attempts",
    "tasks": "No bulk actions yet",
}
"""What each page says if the queue is empty."""


@pytest.mark.parametrize("name", QUEUE_PAGES)
async def test_every_page_of_an_empty_queue_helps(queue: Queue, site: Site, name: str) -> None:
    await queue.get_job_counts()
    assert HELP[name] in await site.page(name, queue=queue.name)


@pytest.mark.parametrize("name", QUEUE_PAGES)
async def test_a_queue_that_does_not_exist_is_not_made(site: Site, name: str) -> None:
    page = await site.json(name, 404, queue="nobody")
    assert page["title"] == "No such queue"
    assert (await site.json("queues"))["queues"] == []


async def test_unknown_pages_parts_and_methods(busy: Busy, site: Site) -> None:
    for path, status in (("/nothing", 404), ("/queues/orders/nothing", 404), ("/queues/orders/actions/nothing", 404)):
        answer = await site.get(path)
        assert answer.status_code == status
        assert "<!doctype html>" in answer.text
    assert (await site.get(site.at("lanes", queue="orders", fragment="nothing"))).status_code == 404
    assert (await site.client.request("PUT", "/queues/orders")).status_code == 405
    answer = await site.client.request("DELETE", "/queues/orders/actions/pause")
    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD", "POST"}
    assert (await site.client.head("/queues/orders")).status_code == 200


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("lanes", {"sort": "weight"}),
        ("lanes", {"limit": "100000"}),
        ("lanes", {"behind": "-1"}),
        ("jobs", {"state": "lost"}),
        ("jobs", {"limit": "many"}),
        ("jobs", {"cursor": "x" * 60}),
        ("queue", {"range": "year"}),
        ("events", {"kind": "party"}),
    ],
)
async def test_what_the_address_may_say_is_limited(busy: Busy, site: Site, name: str, params: dict[str, str]) -> None:
    page = await site.json(name, 400, queue="orders", **params)
    assert page["status"] == 400


async def test_links_of_a_page_lead_to_pages(busy: Busy, site: Site) -> None:
    """Every link of every page is followed. Of links that differ only in the values of their query, one is followed."""
    seen: set[tuple[str, ...]] = set()
    todo = ["/"]
    while todo:
        link = todo.pop()
        parts = urlsplit(link)
        kind = (parts.path, *sorted(parse_qs(parts.query)))
        if kind in seen or parts.path.startswith("/static/"):
            continue
        seen.add(kind)
        answer = await site.get(link)
        assert answer.status_code == 200, f"{link}: {answer.status_code}"
        if answer.headers["content-type"].startswith("text/html"):
            todo += [unescape(found) for found in re.findall(r'\shref="(/[^"#]*)', answer.text)]
    assert len(seen) > 30
