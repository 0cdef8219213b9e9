"""Authentication, permissions, requests of other sites, headers, limits and redaction."""

from __future__ import annotations

import logging
from typing import Any

import httpx
import pytest

from groupmq import Queue
from groupmq.dashboard import allow_anyone, hash_password
from groupmq.dashboard.actions.catalogue import ACTIONS
from groupmq.dashboard.pages import PAGES
from tests.dashboard.busy import Busy
from tests.dashboard.conftest import MakeSite
from tests.dashboard.visitor import Site, basic

TOKEN = "a-token-of-some-length"


def every_page(site: Site, busy: Busy) -> list[str]:
    """The address of every page, with ids that exist."""
    ids = {"group": busy.group("user:held"), "job": busy.ids["failed"], "task": "none"}
    found = [site.at(name, queue="orders", **ids) for name in PAGES if name != "task"]
    found += [site.at("action", queue="orders", action=name, **ids, key="hourly") for name in ACTIONS]
    return [*found, site.at("openapi"), site.at("stream"), site.at("stream", queue="orders")]


# Authentication


async def test_without_authentication_only_this_machine_is_served(busy: Busy, site: Site) -> None:
    away = httpx.ASGITransport(app=site.dashboard, client=("192.0.2.7", 1))
    async with httpx.AsyncClient(transport=away, base_url="http://127.0.0.1") as client:
        for path in every_page(site, busy):
            answer = await client.get(path)
            assert answer.status_code == 403
            assert "no authentication" in answer.text


async def test_a_name_that_another_site_points_here_is_not_ours(busy: Busy, site: Site) -> None:
    answer = await site.client.get("/", headers={"Host": "evil.example"})
    assert answer.status_code == 403
    for host in ("localhost:8400", "127.0.0.1", "[::1]:8400", "[::1]"):
        assert (await site.client.get("/", headers={"Host": host})).status_code == 200


async def test_every_page_wants_a_login(busy: Busy, make_site: MakeSite) -> None:
    site = make_site(auth=TOKEN)
    for path in every_page(site, busy):
        answer = await site.client.get(path, headers={"Accept": "application/json"})
        assert answer.status_code == 401, path
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "hunter2" not in answer.text
    assert (await site.get("/queues/orders")).headers["location"] == "/login?next=%2Fqueues%2Forders"
    assert (await site.get("/healthz")).status_code == 200
    assert (await site.get("/static/app.css")).status_code == 200


async def test_a_bearer_token(busy: Busy, make_site: MakeSite) -> None:
    site = make_site(auth=TOKEN)
    assert (await site.get("/", Authorization=f"Bearer {TOKEN}")).status_code == 200
    assert (await site.get("/", Authorization="Bearer wrong-token-of-some-length")).status_code == 303
    site.client.headers["Authorization"] = f"Bearer {TOKEN}"
    assert (await site.act("pause"))["ok"]


async def test_a_login_gives_a_session_that_only_we_can_have_made(busy: Busy, make_site: MakeSite) -> None:
    site = make_site(auth=TOKEN)
    form = {"token": TOKEN, "next": "/queues/orders", "csrf": await site.token("/login")}
    answer = await site.post("/login", form)
    assert (answer.status_code, answer.headers["location"]) == (303, "/queues/orders")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert TOKEN not in cookie
    assert (await site.get("/queues/orders")).status_code == 200
    assert "Log out" in (await site.get("/")).text
    site.client.cookies.set("groupmq_session", "9999999999.dG9rZW4.forged", domain="127.0.0.1")
    assert (await site.get("/queues/orders")).status_code == 303


async def test_a_wrong_login(busy: Busy, make_site: MakeSite) -> None:
    site = make_site(auth=TOKEN)
    token = await site.token("/login")
    wrong = await site.post("/login", {"token": "wrong", "next": "/", "csrf": token})
    assert wrong.status_code == 403
    assert "not the token" in wrong.text
    forged = await site.post("/login", {"token": TOKEN, "next": "/", "csrf": "forged"})
    assert forged.status_code == 403


async def test_a_login_leads_nowhere_else(busy: Busy, make_site: MakeSite) -> None:
    site = make_site(auth=TOKEN)
    form = {"token": TOKEN, "next": "//evil.example/", "csrf": await site.token("/login")}
    assert (await site.post("/login", form)).headers["location"] == "/"


async def test_a_logout_ends_the_session(busy: Busy, make_site: MakeSite) -> None:
    site = make_site(auth=TOKEN)
    await site.post("/login", {"token": TOKEN, "next": "/", "csrf": await site.token("/login")})
    assert (await site.post("/logout", {"csrf": "forged"})).status_code == 403
    answer = await site.post("/logout", {"csrf": await site.token("/queues/orders")})
    assert answer.status_code == 303
    assert (await site.get("/")).status_code == 303


async def test_names_with_hashed_passwords(busy: Busy, make_site: MakeSite) -> None:
    site = make_site(auth={"ada": hash_password("lovelace")})
    for header in ("", basic("ada", "wrong"), basic("eve", "lovelace"), "Basic !", basic("ada", "")):
        answer = await site.get("/", **({"Authorization": header} if header else {}))
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Basic")
    for _ in range(2):
        assert (await site.get("/", Authorization=basic("ada", "lovelace"))).status_code == 200


async def test_a_check_of_the_host_app(busy: Busy, make_site: MakeSite) -> None:
    async def check(request: Any) -> str | None:
        name: str | None = request.headers.get("x-user")
        return name

    site = make_site(auth=check)
    assert (await site.get("/")).status_code == 403
    assert (await site.get("/", X_User="ada")).status_code == 200
    open_site = make_site(auth=allow_anyone)
    assert (await open_site.client.get("/", headers={"Host": "queues.example"})).status_code == 200


# Permissions


async def test_permissions_are_asked_for_each_action(busy: Busy, make_site: MakeSite) -> None:
    asked: list[tuple[str, str]] = []

    def permissions(user: str, action: str) -> bool:
        asked.append((user, action))
        return action in ("view", "pause")

    site = make_site(permissions=permissions)
    assert (await site.act("pause"))["ok"]
    for name in ACTIONS:
        if name != "pause":
            await site.plan(name, 403, job=busy.ids["failed"])
            await site.act(name, 403, job=busy.ids["failed"])
    assert ("local", "retry") in asked
    assert (await site.json("job", queue="orders", job=busy.ids["failed"]))["actions"] == []
    html = await site.page("job", queue="orders", job=busy.ids["failed"])
    assert "/actions/retry" not in html
    assert await busy.queue.get_failed_count() == 1


async def test_one_who_may_not_look_sees_nothing(busy: Busy, make_site: MakeSite) -> None:
    site = make_site(permissions=lambda user, action: False)
    for path in every_page(site, busy):
        answer = await site.get(path)
        assert answer.status_code == 403
        assert "orders" not in answer.text.replace(path, "")


async def test_permissions_that_raise_allow_nothing(busy: Busy, make_site: MakeSite) -> None:
    def broken(user: str, action: str) -> bool:
        raise RuntimeError("no")

    assert (await make_site(permissions=broken).get("/")).status_code == 403


@pytest.mark.parametrize("truthy", [1, "no", [0]])
async def test_only_true_is_yes(busy: Busy, make_site: MakeSite, truthy: Any) -> None:
    assert (await make_site(permissions=lambda user, action: truthy).get("/")).status_code == 403


async def test_read_only_is_enforced_for_every_method(busy: Busy, make_site: MakeSite) -> None:
    site = make_site(read_only=True)
    before = await busy.queue.get_job_counts()
    fields = {"job": busy.ids["failed"], "group": "user:held", "state": "failed", "data": "1", "key": "hourly"}
    for name in ACTIONS:
        await site.act(name, 403, **fields)
        await site.plan(name, 403, **fields)
        for method in ("PUT", "PATCH", "DELETE"):
            answer = await site.client.request(method, site.at("action", queue="orders", action=name), json=fields)
            assert answer.status_code == 403
    stop = await site.client.post("/queues/orders/tasks/x/stop", json={})
    assert stop.status_code == 403
    assert await busy.queue.get_job_counts() == before
    for name in ("queue", "lanes", "failures", "repeats"):
        assert "/actions/" not in await site.page(name, queue="orders")


# Requests from another site


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9"},
    ],
)
async def test_a_request_of_another_site_is_refused(busy: Busy, site: Site, headers: dict[str, str]) -> None:
    path = site.at("action", queue="orders", action="pause")
    token = await site.token()
    form = await site.post(path, {"csrf": token}, **headers)
    assert form.status_code == 403
    script = await site.client.post(path, json={}, headers=headers)
    assert script.status_code == 403
    assert not await busy.queue.is_paused()


async def test_a_form_needs_the_token_of_a_page(busy: Busy, site: Site, make_site: MakeSite) -> None:
    path = site.at("action", queue="orders", action="pause")
    other = await make_site().token()
    for token in ("", "forged", other):
        answer = await site.post(path, {"csrf": token}, Origin="http://127.0.0.1", Sec_Fetch_Site="same-origin")
        assert answer.status_code == 403
    assert not await busy.queue.is_paused()
    answer = await site.submit("pause")
    assert answer.status_code == 303
    assert await busy.queue.is_paused()


async def test_a_token_is_good_for_one_browser_only(busy: Busy, site: Site) -> None:
    token = await site.token()
    site.client.cookies.clear()
    answer = await site.post(site.at("action", queue="orders", action="pause"), {"csrf": token})
    assert answer.status_code == 403


async def test_plain_text_cannot_stand_for_json(busy: Busy, site: Site) -> None:
    """A form of another site can send text/plain. A server that reads JSON from it would let that site act."""
    path = site.at("action", queue="orders", action="pause")
    for kind in ("text/plain", "multipart/form-data; boundary=x", ""):
        answer = await site.client.post(path, content=b'{"a": 1}', headers={"Content-Type": kind})
        assert answer.status_code in (403, 415)
    assert not await busy.queue.is_paused()


# Headers, limits, leaks


async def test_strict_headers_on_every_answer(busy: Busy, site: Site) -> None:
    for path in ("/", "/queues/orders/lanes", "/nothing", "/healthz", "/api/v1/queues", "/static/app.js"):
        headers = (await site.get(path)).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "same-origin"
    assert (await site.get("/")).headers["cache-control"] == "no-store"


async def test_no_page_needs_what_the_policy_forbids(busy: Busy, site: Site) -> None:
    """Pages have no inline script or style, no handler in an attribute, and nothing from another host."""
    import re

    for path in every_page(site, busy):
        if "stream" in path:
            continue
        html = (await site.get(path)).text
        assert not re.search(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)", html), path
        assert not re.search(r"\sstyle=", html), path
        assert "<style" not in html
        assert not re.search(r"\son[a-z]+=", html), path
        assert not re.search(r'(?:src|href)="https?://', html), path


async def test_a_body_that_is_too_large_is_refused(busy: Busy, site: Site) -> None:
    answer = await site.client.post(
        site.at("action", queue="orders", action="add"),
        content=b'"' + b"x" * (3 * 1024 * 1024) + b'"',
        headers={"Content-Type": "application/json"},
    )
    assert answer.status_code == 413


async def test_no_file_outside_is_served(site: Site) -> None:
    for path in (
        "../app.py",
        "..%2fapp.py",
        "%2e%2e/app.py",
        "/etc/passwd",
        "vendor/../../app.py",
        "nothing.js",
        "vendor",
    ):
        answer = await site.client.get(f"/static/{path}")
        assert answer.status_code == 404, path


async def test_the_servers_address_is_nowhere(busy: Busy, site: Site, url: str) -> None:
    port = url.rsplit(":", 1)[1].partition("/")[0]
    for path in [*every_page(site, busy), "/queues/nobody", "/queues/orders/jobs/nothing"]:
        if "stream" in path:
            continue
        for accept in ("text/html", "application/json"):
            text = (await site.get(path, Accept=accept)).text
            assert f":{port}" not in text
            assert "redis://" not in text


async def test_each_action_is_in_the_audit(busy: Busy, make_site: MakeSite, caplog: pytest.LogCaptureFixture) -> None:
    entries: list[Any] = []
    site = make_site(auth={"ada": hash_password("x")}, audit=entries.append)
    site.client.headers["Authorization"] = basic("ada", "x")
    with caplog.at_level(logging.INFO, "groupmq.dashboard.audit"):
        await site.act("retry", job=busy.ids["failed"])
        await site.act("add", data={"password": "hunter2"}, group="a\nb")
        await site.act("retry", 404, job="nothing")
    assert [(entry["user"], entry["action"], entry["outcome"], entry["count"]) for entry in entries] == [
        ("ada", "retry", "done", 1),
        ("ada", "add", "done", 1),
        ("ada", "retry", "refused", 0),
    ]
    assert entries[0]["target"] == {"job": busy.ids["failed"]}
    lines = [record.getMessage() for record in caplog.records if record.name == "groupmq.dashboard.audit"]
    assert lines[0].startswith(f"user='ada' action=retry queue='orders' job='{busy.ids['failed']}' count=1")
    assert not any("\n" in line or "hunter2" in line for line in lines)


async def test_an_audit_hook_that_raises_stops_nothing(busy: Busy, make_site: MakeSite) -> None:
    def broken(entry: Any) -> None:
        raise RuntimeError("no")

    assert (await make_site(audit=broken).act("pause"))["ok"]


# Redaction


@pytest.mark.parametrize("rule", [["password"], lambda value, kind: "[hidden]"])
async def test_redacted_values_appear_on_no_page(busy: Busy, make_site: MakeSite, rule: Any) -> None:
    site = make_site(redact=rule)
    ids = [busy.ids[name] for name in ("completed", "failed", "held", "active", "delayed")]
    paths = every_page(site, busy)
    paths += [site.at("job", queue="orders", job=job_id) for job_id in ids]
    paths += [site.at("jobs", queue="orders", state=s) for s in ("waiting", "active", "delayed", "failed", "completed")]
    paths += [site.at("action", queue="orders", action="edit", job=busy.ids["delayed"])]
    for path in paths:
        if "stream" in path:
            continue
        for accept in ("text/html", "application/json"):
            assert "hunter2" not in (await site.get(path, Accept=accept)).text, path


async def test_a_search_does_not_reveal_what_is_redacted(busy: Busy, make_site: MakeSite) -> None:
    site = make_site(redact=["password"])
    hidden = await site.json("jobs", queue="orders", state="completed", q="data:hunter2")
    assert hidden["jobs"] == []
    seen = await site.json("jobs", queue="orders", state="completed", q="data:complete")
    assert len(seen["jobs"]) == 1
    await site.plan("retry-matching", 422, q="data:hunter2")
    await site.act("remove-matching", 422, q="hunter2")


async def test_redacted_data_cannot_be_saved_over_the_real_one(busy: Busy, make_site: MakeSite) -> None:
    site = make_site(redact=["password"])
    assert (await site.plan("edit", job=busy.ids["delayed"]))["refused"]
    await site.act("edit", 409, job=busy.ids["delayed"], data={"a": 1})
    job = await busy.queue.require_job(busy.ids["delayed"])
    assert job.data["password"] == "hunter2"


async def test_queues_outside_the_list_cannot_be_reached(busy: Busy, make_queue: Any, make_site: MakeSite) -> None:
    other: Queue = make_queue("private")
    await other.add({})
    site = make_site("orders")
    for name in PAGES:
        if name != "queues":
            await site.json(name, 404, queue="private", group="g", job="j", task="t")
    await site.act("pause", 404, queue="private")
    assert not await other.is_paused()
