"""The committed blocking client is the one that `make sync` generates."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tools import unasync


@pytest.mark.skipif(find_spec("ruff") is None, reason="ruff, which formats the files, is not installed")
def test_the_blocking_client_is_not_stale() -> None:
    assert unasync.stale() == [], "run `make sync`"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("async def f() -> int:\n    return await g()\n", "def f() -> int:\n    return g()\n"),
        ("x = (await a.b(c, d)).e\n", "x = a.b(c, d).e\n"),
        ("x = f((await a.b(c))[0])\n", "x = f(a.b(c)[0])\n"),
        ("x = f(await a.b(c))\n", "x = f(a.b(c))\n"),
        ("x = (await a or b).c\n", "x = (a or b).c\n"),
        ("x = not (await a.b())\n", "x = not a.b()\n"),
        ("x = (await a) if b else c\n", "x = a if b else c\n"),
        ("async with a:\n    async for b in c:\n        pass\n", "with a:\n    for b in c:\n        pass\n"),
        ('"""Read.\n\n>>> await queue.add(1)\n"""\nx = await y\n', '"""Read.\n\n>>> queue.add(1)\n"""\nx = y\n'),
        ("from groupmq.client.queue.base import X\n", "from groupmq.sync.queue.base import X\n"),
        ("from groupmq.client.answers.jobs import X\n", "from groupmq.client.answers.jobs import X\n"),
        ("from groupmq.client import registry\n", "from groupmq.sync import registry\n"),
        (
            "from groupmq.client.queue import (\n    adding,\n    bulk,\n)\n",
            "from groupmq.sync.queue import adding, bulk\n",
        ),
        (
            "from groupmq.client.queue import adding, joining\n",
            "from groupmq.client.queue import joining\nfrom groupmq.sync.queue import adding\n",
        ),
        ("x: Connection\n", "x: BlockingConnection\n"),
        ("def f() -> Coroutine[Any, Any, list[int]]: ...\n", "def f() -> list[int]: ...\n"),
        ("x: Callable[[A], Coroutine[Any, Any, T]]\n", "x: Callable[[A], T]\n"),
        ("def f() -> AsyncGenerator[Event, None]: ...\n", "def f() -> Iterator[Event]: ...\n"),
        ("from collections.abc import AsyncGenerator\n", "from collections.abc import Iterator\n"),
        ("x = PerLoop(make)\n", "x = PerProcess(make)\n"),
        ("x = redis.asyncio.Connection()\n", "x = redis.Connection()\n"),
    ],
)
def test_await_and_async_go_and_imports_lead_to_the_twins(source: str, expected: str) -> None:
    header, _, rest = unasync.translated(source, "queue/base.py").partition("\n")
    assert header == "# Generated from src/groupmq/client/queue/base.py by `make sync`; do not edit."
    assert rest == expected
