"""No method, signature or docstring of the client is written twice, and the check for that finds violations."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.spelled_twice import spelled_twice
from tools.unasync import BY_HAND

ASYNCHRONOUS = '''"""Event loops."""

class Runtime:
    """In event loops."""

    async def add(self, data: int) -> int:
        """Add a job.

        >>> await queue.add(1)
        """

    async def _send(self, data: int) -> int:
        return data
'''


def in_a_package(folder: Path, blocking: str) -> list[str]:
    """The findings in a package in which all modules of BY_HAND are alike; `blocking` is the text of their twins."""
    for side, text in (("client", ASYNCHRONOUS), ("sync", blocking)):
        for name in BY_HAND:
            path = folder / side / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return spelled_twice(folder)


def test_the_client_is_written_once() -> None:
    assert spelled_twice() == []


def test_private_methods_of_one_name_are_the_parts_that_differ(tmp_path: Path) -> None:
    blocking = "class Runtime:\n    def _send(self, data: int) -> int:\n        return -data\n"
    assert in_a_package(tmp_path, blocking) == []


@pytest.mark.parametrize(
    ("blocking", "finding"),
    [
        ("class Runtime:\n    def add(self, data: int) -> int: ...\n", "Runtime.add is defined in client/"),
        ("class Runtime:\n    def add(self, data: float) -> None:\n        'Other.'\n", "Runtime.add is defined"),
        (
            "class Runtime:\n    def _add(self):\n        '''Add a job.\n\n        >>> queue.add(1)\n        '''\n",
            "'Add a job. >>>",
        ),
        ("class Runtime:\n    '''In event loops.'''\n", "'In event loops.'"),
        ("class Runtime:\n    def _send(self, data: float) -> int:\n        return 1\n", "_send has another signature"),
        ("class Runtime:\n    def _send(self, data: int) -> int:\n        return data\n", "_send is a copy"),
        ("'''Event\nloops.'''\n", "'Event loops.'"),
    ],
)
def test_what_the_twin_spells_too_is_found(tmp_path: Path, blocking: str, finding: str) -> None:
    found = in_a_package(tmp_path, blocking)
    assert len(found) == len(BY_HAND)
    assert all(
        f"src/groupmq/sync/{name}: " in line and finding in line for name, line in zip(BY_HAND, found, strict=True)
    )
