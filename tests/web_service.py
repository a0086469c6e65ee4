"""A web service on this machine that answers as a test says, and counts its connections."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any


@dataclass(frozen=True)
class Request:
    """What a client sent."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


Reply = tuple[int, Any] | tuple[int, Any, dict[str, str]]
"""A status, an object that is sent as JSON, and perhaps headers."""


@dataclass
class WebService:
    """Answers each request by a function; what it raises cuts the connection."""

    answer: Callable[[Request], Reply]
    url: str = ""
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    at_once: int = 0
    most_at_once: int = 0
    lock: Lock = field(default_factory=Lock)

    def handle(self, request: Request) -> Reply:
        """Count a request, and answer it."""
        with self.lock:
            self.requests.append(request)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return self.answer(request)
        finally:
            with self.lock:
                self.at_once -= 1


@contextmanager
def serving(answer: Callable[[Request], Reply]) -> Iterator[WebService]:
    """A service on a free port of 127.0.0.1, for as long as the block lasts."""
    service = WebService(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Headers and body leave in one packet.
        wbufsize = -1

        def setup(self) -> None:
            with service.lock:
                service.connections += 1
            super().setup()

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            try:
                status, value, *headers = service.handle(
                    Request(self.command, self.path, dict(self.headers), body)
                )
            except ConnectionError:
                self.close_connection = True
                return
            content = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            for name, text in {"Content-Length": str(len(content)), **(headers or [{}])[0]}.items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(content)
            self.wfile.flush()

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 128
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Clients that time out hang up."""

    server = Server(("127.0.0.1", 0), Handler)
    service.url = f"http://127.0.0.1:{server.server_port}"
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
