"""The command as an operator uses it: run in this process or as a program, and compared with golden answers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from groupmq.cli.tree import cli

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).with_name("golden")
PROGRAM = [sys.executable, "-m", "groupmq.cli"]

# Replacements for values that differ from run to run, of the same width where columns depend on it.
_VARYING = [
    (r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00", "<time>"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "YYYY-MM-DD hh:mm:ss"),
    (r"\b1[78]\d{11}\b", "<epoch milliseconds>"),
    (r'"fence": \d{6,}', '"fence": 1'),
    (r'"oldest_wait": [\d.]+', '"oldest_wait": 0.0'),
    (r"has waited \d+ m?s", "has waited 0 s"),
    (r"redis://127\.0\.0\.1:\d+(/0)?", "redis://server"),
    (r"(Valkey|Redis) [\d.]+", "Server 0.0"),
    (r"[\d.]+ MB used, \d+% of the machine's memory \(\d+ GB\)", "some memory used"),
    (r"(oldest waiting +|oldest waiting\", \"status\": \"ok\", \"detail\": \")\d+ m?s", r"\g<1>0 s"),
    (r"orders-[A-Za-z0-9_-]{12,}", "<worker>"),
]


def steady(text: str) -> str:
    """The answer with values that differ from run to run replaced."""
    for pattern, instead in _VARYING:
        text = re.sub(pattern, instead, text)
    return text


def golden(name: str, text: str) -> None:
    """Compare with tests/cli/golden/NAME; GOLDEN=write overwrites the file with the current answer, to be read and
    committed."""
    file, found = GOLDEN / name, steady(text)
    if os.environ.get("GOLDEN") == "write":
        file.write_text(found, encoding="utf-8")
    assert file.exists(), f"no golden answer {name}; GOLDEN=write makes it"
    assert found == file.read_text(encoding="utf-8")


@dataclass(frozen=True)
class Answer:
    """The result of a call of the command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def line(self, code: int) -> str:
        """The only line on stderr of a call that failed with this exit code."""
        assert self.code == code, (self.code, self.out, self.err)
        assert self.err.startswith("groupmq: "), self.err
        assert self.err.count("\n") == 1, self.err
        assert "Traceback" not in self.out + self.err
        return self.err.removeprefix("groupmq: ").rstrip("\n")


class Command:
    """`groupmq`, with a server and the queue `orders` in its environment."""

    def __init__(self, url: str, queue: str = "orders") -> None:
        self.env = {"GROUPMQ_URL": url, "GROUPMQ_QUEUE": queue, "COLUMNS": "100"}

    def __call__(self, *words: str, stdin: str | None = None, **env: str) -> Answer:
        """Run the command in this process."""
        done = CliRunner().invoke(cli, list(words), input=stdin, env=self.env | env, prog_name="groupmq")
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Answer(done.exit_code, done.stdout, done.stderr)

    def program(self, *words: str, stdin: str = "", **env: str) -> Answer:
        """Run the command as a separate program."""
        done = subprocess.run(
            [*PROGRAM, *words], env=self.environment(**env), input=stdin, capture_output=True, text=True, timeout=60
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def environment(self, **env: str) -> dict[str, str]:
        path = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
        return os.environ | self.env | {"PYTHONPATH": path} | env
