"""A logout ends the session itself, not only the browser's copy of its cookie."""

from __future__ import annotations

import httpx
import pytest

from groupmq import ConfigurationError, Queue
from groupmq.dashboard import create_app
from groupmq.dashboard.security.auth import SESSION, TokenAuth
from groupmq.dashboard.security.sessions import LIFETIME, Sessions
from tests.dashboard.conftest import MakeSite
from tests.dashboard.serving import messages, serving, until
from tests.dashboard.visitor import Site

TOKEN = "a-token-of-some-length"


async def log_in(site: Site) -> str:
    """Log in. Returns the cookie of the new session."""
    answer = await site.post("/login", {"token": TOKEN, "next": "/", "csrf": await site.token("/login")})
    assert answer.status_code == 303
    return answer.cookies[SESSION]


async def with_cookie(site: Site, cookie: str, path: str = "/") -> int:
    """The status of a request that has only a copy of the cookie."""
    transport = httpx.ASGITransport(app=site.dashboard)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", cookies={SESSION: cookie}) as client:
        return (await client.get(path, headers={"Accept": "text/html"})).status_code


async def test_a_copied_cookie_ends_with_the_logout(queue: Queue, make_site: MakeSite) -> None:
    await queue.add({})
    site = make_site(auth=TOKEN)
    copied = await log_in(site)
    assert await with_cookie(site, copied) == 200
    csrf = await site.token(site.at("action", queue=queue.name, action="add"))
    assert (await site.post("/logout", {"csrf": csrf})).status_code == 303
    for path in ("/", f"/queues/{queue.name}", f"/queues/{queue.name}/stream"):
        assert await with_cookie(site, copied, path) == 303
    assert await with_cookie(site, copied, "/api/v1/queues") == 401
    site.client.cookies.set(SESSION, copied, domain="127.0.0.1")
    assert (await site.post("/logout", {"csrf": csrf})).status_code == 401
    assert (await site.client.post(f"/api/v1/queues/{queue.name}/actions/pause", json={})).status_code == 401


SECRET = "a-secret-that-outlasts-the-process-it-was-given-to"


@pytest.mark.parametrize(
    ("token", "secret", "status"),
    [
        (TOKEN, SECRET, 200),
        (TOKEN, None, 303),
        (TOKEN, SECRET[::-1], 303),
        ("another-token-of-some-length", SECRET, 303),
    ],
)
async def test_with_a_secret_sessions_outlast_a_restart(
    queue: Queue, make_site: MakeSite, token: str, secret: str | None, status: int
) -> None:
    await queue.add({})
    before = make_site(auth=TOKEN, secret=SECRET)
    cookie = await log_in(before)
    csrf = await before.token(before.at("action", queue=queue.name, action="add"))
    after = make_site(auth=token, secret=secret)
    assert await with_cookie(after, cookie) == status
    after.client.cookies = before.client.cookies
    action = after.at("action", queue=queue.name, action="pause")
    assert (await after.post(action, {"csrf": csrf})).status_code == (303 if status == 200 else 401)
    assert await queue.is_paused() == (status == 200)


def test_a_short_secret_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigurationError, match="secret: expected a text of at least 32") as refused:
        create_app(secret="hunter2")
    assert "hunter2" not in str(refused.value)


async def test_a_logout_ends_no_other_session(queue: Queue, make_site: MakeSite) -> None:
    await queue.add({})
    site = make_site(auth=TOKEN)
    other = await log_in(site)
    site.client.cookies.clear()
    mine = await log_in(site)
    csrf = await site.token(site.at("action", queue=queue.name, action="add"))
    await site.post("/logout", {"csrf": csrf})
    assert await with_cookie(site, mine) == 303
    assert await with_cookie(site, other) == 200


@pytest.mark.parametrize("path", ["/stream", "/queues/{queue}/stream"])
async def test_a_stream_ends_with_its_session(queue: Queue, make_site: MakeSite, path: str) -> None:
    await queue.add({})
    auth = TokenAuth(TOKEN)
    site = make_site(auth=auth)
    cookie = await log_in(site)
    address = path.replace("{queue}", queue.name)
    async with serving(site.dashboard) as at, httpx.AsyncClient(timeout=30, cookies={SESSION: cookie}) as client:
        async with client.stream("GET", at + address) as answer:
            stream = messages(answer)
            await until(stream, "hello")
            auth.sessions.end(cookie)
            await queue.add({})
            names = [said.name async for said in stream]
        assert len(names) <= 1, "at most one message, which was already on its way"
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with client.stream("GET", at + address, headers=headers) as answer:
            stream = messages(answer)
            await until(stream, "hello")
            await queue.add({})
            await until(stream, "snapshot")


def test_an_ended_session_stays_ended_until_it_would_have_expired(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000_000.0
    for name in ("sessions", "signing"):
        monkeypatch.setattr(f"groupmq.dashboard.security.{name}.time.time", lambda: now)
    sessions = Sessions(b"secret")
    ended, open_one = sessions.begin(), sessions.begin()
    sessions.end(ended)
    for later in (1.0, LIFETIME - 1):
        now = 1_000_000.0 + later
        sessions.end("not a session")
        assert not sessions.is_open(ended)
        assert sessions.is_open(open_one)
    now = 1_000_000.0 + LIFETIME + 2
    assert not sessions.is_open(open_one)
    sessions.end(sessions.begin())
    assert len(sessions._ended) == 1, "expired sessions are forgotten"


def test_sessions_of_an_earlier_process_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new process does not know which of them were ended."""
    now = 1_000_000.0
    monkeypatch.setattr("groupmq.dashboard.security.sessions.time.time", lambda: now)
    before = Sessions(b"secret").begin()
    now += 5
    sessions = Sessions(b"secret")
    assert not sessions.is_open(before)
    now -= 3600  # the clock is set back
    assert sessions.is_open(sessions.begin())


def test_a_full_list_of_ended_sessions_ends_all_and_none_comes_back() -> None:
    sessions = Sessions(b"secret", most_ended=3)
    bystander = sessions.begin()
    ended = [sessions.begin() for _ in range(4)]
    for cookie in ended:
        assert sessions.is_open(cookie)
        sessions.end(cookie)
    assert not any(sessions.is_open(cookie) for cookie in [bystander, *ended])
    assert sessions.is_open(sessions.begin())
