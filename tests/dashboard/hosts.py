"""The examples of docs/dashboard.md as apps, and how the test logs in to each of their hosts."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx

DOCS = Path(__file__).parents[2] / "docs" / "dashboard.md"
USER = {"name": "ada", "is_staff": True}
LOGIN = "/enter"
Enter = Callable[[httpx.AsyncClient], Awaitable[None]]


class Host:
    """One example, loaded as a separate module, with a way to log in to the host app."""

    def __init__(self, framework: str, module: ModuleType, app: Any, enter: Enter) -> None:
        self.framework = framework
        self.dashboard: Any = module.dashboard
        self.app = app
        self.enter = enter


def examples() -> dict[str, str]:
    """The examples on the page, by the name of the framework."""
    text = DOCS.read_text()
    found = re.findall(r"^([A-Z][A-Za-z]+)(?:, in `asgi.py`)?:\n\n```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return dict(found)


def load(framework: str, folder: Path) -> Host:
    """Load the example exactly as the page shows it."""
    if framework == "Django":
        set_up_django(folder)
    module = _module(f"{framework.lower()}_example", examples()[framework], folder)
    return HOSTS[framework](module)


def _module(name: str, source: str, folder: Path) -> ModuleType:
    path = folder / f"{name}.py"
    path.write_text(source)
    sys.modules.pop(name, None)
    sys.path.insert(0, str(folder))
    try:
        importlib.invalidate_caches()
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop(name, None)


async def _by_route(client: httpx.AsyncClient) -> None:
    answer = await client.get(LOGIN)
    assert answer.status_code == 200, answer.text


def starlette(module: ModuleType) -> Host:
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse, Response

    async def enter(request: Request) -> Response:
        request.session["user"] = USER
        return PlainTextResponse("in")

    app: Any = module.app
    app.router.add_route(LOGIN, enter)
    return Host("Starlette", module, app, _by_route)


def fastapi(module: ModuleType) -> Host:
    from fastapi import Request

    app: Any = module.app

    async def enter(request: Request) -> str:
        request.session["user"] = USER
        return "in"

    enter.__annotations__["request"] = Request
    app.get(LOGIN)(enter)
    return Host("FastAPI", module, app, _by_route)


def litestar(module: ModuleType) -> Host:
    from litestar import Request, get

    async def enter(request: Request[Any, Any, Any]) -> str:
        request.set_session({"user": USER})
        return "in"

    enter.__annotations__.update(request=Request, **{"return": str})
    app: Any = module.app
    app.register(get(LOGIN)(enter))
    return Host("Litestar", module, app, _by_route)


def quart(module: ModuleType) -> Host:
    from quart import session

    async def enter() -> str:
        session["user"] = USER
        return "in"

    app: Any = module.app
    app.add_url_rule(LOGIN, view_func=enter)
    return Host("Quart", module, app, _by_route)


def set_up_django(folder: Path) -> None:
    """Configure Django, once, since its settings belong to the process. Its database is a file."""
    import django
    from django.conf import settings
    from django.core.management import call_command

    if not settings.configured:
        settings.configure(
            SECRET_KEY="a secret key of a test",
            ALLOWED_HOSTS=["127.0.0.1"],
            INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"],
            DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(folder / "django.sqlite3")}},
            ROOT_URLCONF="tests.dashboard.no_urls",
        )
        django.setup()
        call_command("migrate", verbosity=0)


def django(module: ModuleType) -> Host:
    async def enter(client: httpx.AsyncClient) -> None:
        from asgiref.sync import sync_to_async

        client.cookies.set("sessionid", await sync_to_async(_django_session)())

    return Host("Django", module, module.application, enter)


def _django_session() -> str:
    """Create the session of a staff member, as Django's own login does."""
    from django.contrib.auth.models import User
    from django.test import Client

    user, _ = User.objects.get_or_create(username=USER["name"], is_staff=True)
    client = Client()
    client.force_login(user)
    return str(client.cookies["sessionid"].value)


HOSTS: dict[str, Callable[[ModuleType], Host]] = {
    "Starlette": starlette,
    "FastAPI": fastapi,
    "Litestar": litestar,
    "Quart": quart,
    "Django": django,
}
