"""Small pages over HTTP for probes and scrapers, served by a thread: they answer while the event loop hangs."""

from __future__ import annotations

import logging
import socketserver
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from groupmq.cli.exits import StartFailed

_logger = logging.getLogger("groupmq.cli")
HttpPage = tuple[int, str, bytes]
Make = Callable[[], HttpPage]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], pages: Mapping[str, Make]) -> None:
        self.pages = pages
        super().__init__(address, _Visit)

    def server_bind(self) -> None:
        # The method of HTTPServer looks up our host name, which can take long.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])


class _Visit(BaseHTTPRequestHandler):
    server: _Server
    timeout = 10
    server_version, sys_version = "groupmq", ""

    def do_GET(self) -> None:
        make = self.server.pages.get(self.path.partition("?")[0])
        if make is None:
            words = f"there is {', '.join(sorted(self.server.pages))}\n"
            self._answer(404, "text/plain", words.encode())
            return
        try:
            page = make()
        except Exception as error:
            page = 500, "text/plain", f"{type(error).__name__}: {error}\n".encode()
        self._answer(*page)

    do_HEAD = do_GET

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Pages:
    """A port and its pages, served until closed."""

    def __init__(self, bind: str, port: int, pages: Mapping[str, Make]) -> None:
        try:
            self._server = _Server((bind, port), pages)
        except OSError as error:
            raise StartFailed(f"cannot serve on {bind}:{port}: {error.strerror or error}") from error
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.2,), name="pages", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def serve(bind: str, ports: Mapping[str, int | None], pages: Mapping[str, Mapping[str, Make]]) -> list[Pages]:
    """Serve each kind of pages on its port, those that share a port together; a port that is None is not served."""
    shared: dict[int, dict[str, Make]] = {}
    private: list[tuple[int, Mapping[str, Make]]] = []
    for kind, port in ports.items():
        if port == 0:
            private.append((0, pages[kind]))
        elif port is not None:
            shared.setdefault(port, {}).update(pages[kind])
    opened: list[Pages] = []
    try:
        for port, those in [*shared.items(), *private]:
            opened.append(Pages(bind, port, those))
            _logger.info("serving %s at http://%s:%d", ", ".join(sorted(those)), bind, opened[-1].port)
    except BaseException:
        for page in opened:
            page.close()
        raise
    return opened
