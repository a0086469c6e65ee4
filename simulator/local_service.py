"""A web service on this machine, for as long as a block lasts: what a stream asks or tells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Final

HOST: Final = "127.0.0.1"


@dataclass(frozen=True)
class Request:
    """A request: method, path with its escapes, headers by name in lower case, body."""

    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True)
class Reply:
    """A status, and a body of JSON."""

    status: int = HTTPStatus.OK
    body: bytes = b"{}"


Respond = Callable[[Request], Reply]
"""Replies to a request; called by several threads at once."""


@contextmanager
def service(respond: Respond, port: int = 0) -> Iterator[str]:
    """Reply to requests for as long as the block lasts; yields the URL, of a free port for 0."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Headers and body leave in one packet.
        wbufsize = -1

        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers.get("content-length", 0)))
            reply = respond(Request(self.command, self.path, headers, body))
            self.send_response(reply.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """A line for each request would be of no use."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 128
        daemon_threads = True

    with Server((HOST, port), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://{HOST}:{server.server_port}"
        finally:
            server.shutdown()
