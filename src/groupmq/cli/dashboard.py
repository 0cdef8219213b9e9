"""`groupmq dashboard`: see and manage the queues in a browser."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from groupmq import Queue
from groupmq.cli.exits import BAD_USAGE, NOT_FOUND, fail
from groupmq.cli.options.shared import examples
from groupmq.cli.output.logs import FORMATS, LEVELS, set_up

HERE = "127.0.0.1"
TOKEN_VARIABLE = "GROUPMQ_DASHBOARD_TOKEN"  # noqa: S105 - the name of a variable
SECRET_VARIABLE = "GROUPMQ_DASHBOARD_SECRET"  # noqa: S105 - the name of a variable
LOOPBACK = ("127.0.0.1", "::1", "localhost")
_STOP_WITHIN = 2
"""Seconds that open streams have to end when the dashboard stops."""


@click.command(
    short_help="See and manage the queues in a browser.",
    epilog=examples(
        "groupmq dashboard",
        "groupmq dashboard --queue orders --queue emails --read-only",
        f"{TOKEN_VARIABLE}=... groupmq dashboard --host 0.0.0.0 --auth token",
        "groupmq dashboard --hash-password     # a line for the file of --auth basic:FILE",
    ),
)
@click.option("--redis-url", envvar=["GROUPMQ_URL", "REDIS_URL"], metavar="URL", help="Server to use.")
@click.option(
    "--queue",
    "--namespace",
    "-q",
    "queues",
    envvar="GROUPMQ_QUEUE",
    multiple=True,
    metavar="NAME",
    help="Show only this queue; may be repeated.",
)
@click.option("--prefix", default="groupmq", show_default=True, help="Prefix of the queues' keys.")
@click.option("--json", "as_json", is_flag=True, help="Print the address, and log lines, as JSON.")
@click.option("--host", envvar="GROUPMQ_DASHBOARD_HOST", default=HERE, show_default=True, help="Address to serve on.")
@click.option("--port", envvar="GROUPMQ_DASHBOARD_PORT", type=click.IntRange(0, 65535), default=8400, show_default=True)
@click.option(
    "--read-only", is_flag=True, envvar="GROUPMQ_DASHBOARD_READ_ONLY", help="Show everything, change nothing."
)
@click.option(
    "--auth",
    envvar="GROUPMQ_DASHBOARD_AUTH",
    metavar="HOW",
    help=f"token (in ${TOKEN_VARIABLE}), token:FILE, basic:FILE, or none (a proxy in front checks users).",
)
@click.option(
    "--secret-file",
    metavar="FILE",
    help=f"Secret that signs logins (or ${SECRET_VARIABLE}), so that they survive a restart.",
)
@click.option("--redact", multiple=True, metavar="FIELD", help="Hide this field of job data; may be repeated.")
@click.option("--root-path", default="", metavar="PATH", help="Path at which a proxy serves it, such as /queues.")
@click.option(
    "--proxy", default=HERE, show_default=True, metavar="ADDRESSES", help="Proxies whose headers are trusted."
)
@click.option("--hash-password", is_flag=True, help="Ask for a name and a password, print a line for basic:FILE, exit.")
@click.option("--log-level", type=click.Choice(LEVELS), default="warning", show_default=True)
@click.option("--log-format", type=click.Choice(FORMATS), help="Log lines as text (default) or JSON.")
def dashboard(
    redis_url: str | None,
    queues: tuple[str, ...],
    prefix: str,
    as_json: bool,
    host: str,
    port: int,
    read_only: bool,
    auth: str | None,
    secret_file: str | None,
    redact: tuple[str, ...],
    root_path: str,
    proxy: str,
    hash_password: bool,
    log_level: str,
    log_format: str | None,
) -> None:
    """See and manage the queues of a server in a browser.

    Serves this machine only, unless --auth says who may connect from elsewhere. Without --queue it shows all queues of
    the server. Needs pip install 'groupmq[dashboard]'.
    """
    module = load()
    if hash_password:
        print_password_line(module)
        return
    if host not in LOOPBACK and auth is None:
        fail(
            f"--host {host} would let anyone in: give --auth token or --auth basic:FILE "
            "(or --auth none if a proxy in front of it authenticates users)",
            BAD_USAGE,
        )
    Queue.address_of(redis_url)  # raises for a wrong URL now, not on the first page
    set_up(log_level, log_format or ("json" if as_json else "text"))
    app = module.create_app(
        list(dict.fromkeys(queues)) or None,
        redis=redis_url,
        prefix=prefix,
        read_only=read_only,
        auth=authentication(auth, module),
        redact=list(redact) or None,
        secret=Path(secret_file).read_text().strip() if secret_file else os.environ.get(SECRET_VARIABLE) or None,
    )
    serve(app, listen(host, port), root_path=root_path, proxy=proxy, as_json=as_json)


def load() -> Any:
    """The dashboard module; fails with one line if a package is missing."""
    try:
        import uvicorn  # noqa: F401

        from groupmq import dashboard

        return dashboard
    except ImportError as error:
        fail(f"the dashboard needs more packages ({error.name}): pip install 'groupmq[dashboard]'", BAD_USAGE)


def authentication(how: str | None, module: Any) -> Any:
    """The value of `--auth` for `create_app`. Secrets come from files and variables, not from a command line."""
    kind, _, path = (how or "").partition(":")
    if how is None:
        return None
    if how == "none":
        return module.allow_anyone
    if kind == "token":
        token = Path(path).read_text().strip() if path else os.environ.get(TOKEN_VARIABLE, "")
        if not token:
            fail(f"--auth token: ${TOKEN_VARIABLE} is empty; set it, or give a file: token:FILE", BAD_USAGE)
        return token
    if kind == "basic" and path:
        return users(Path(path))
    fail(f"--auth: expected token, token:FILE, basic:FILE or none, got {kind!r}", BAD_USAGE)


def users(path: Path) -> Mapping[str, str]:
    """Read lines `name:hash`, as --hash-password prints them. Empty lines and lines that begin with # are skipped."""
    found: dict[str, str] = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        name, colon, hashed = line.strip().partition(":")
        if not line.strip() or line.startswith("#"):
            continue
        if not colon or not name:
            fail(
                f"{path}, line {number}: expected name:hash, as groupmq dashboard --hash-password prints it", BAD_USAGE
            )
        found[name] = hashed
    return found


def print_password_line(module: Any) -> None:
    name = click.prompt("Name", err=True)
    password = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    click.echo(f"{name}:{module.hash_password(password)}")


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        fail(f"cannot serve on {host} port {port}: {error.strerror or error}", NOT_FOUND)


def serve(app: Any, listening: socket.socket, *, root_path: str = "", proxy: str = HERE, as_json: bool = False) -> None:
    """Serve until Ctrl-C."""
    url = address(listening, root_path)
    click.echo(json.dumps({"url": url}) if as_json else f"groupmq dashboard: {url}")
    make_server(app, root_path=root_path, proxy=proxy).run(sockets=[listening])


def make_server(app: Any, *, root_path: str = "", proxy: str = HERE) -> Any:
    import uvicorn

    from groupmq.dashboard.mounting import below

    return uvicorn.Server(
        uvicorn.Config(
            below(root_path, app),
            forwarded_allow_ips=proxy,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_STOP_WITHIN,
        )
    )


def address(listening: socket.socket, root_path: str = "") -> str:
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else "localhost" if host == HERE else host
    return f"http://{shown}:{port}{root_path.rstrip('/')}/"
