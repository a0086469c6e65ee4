"""A server of this machine: it answers under its own names alone.

A page of another site that a browser has open could give this machine a name of its own, and read
what is served under that.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

LOOPBACK: Final = "127.0.0.1"
TEXT: Final = "text/plain; charset=utf-8"


class LocalServer(ThreadingHTTPServer):
    """A server at an address; `hosts` are its names with their ports, None for any.

    Raises OSError where the port is taken.
    """

    hosts: Collection[str] | None

    def __init__(self, host: str, port: int, handler: type[LocalHandler]) -> None:
        super().__init__((host, port), handler)
        self.hosts = {f"{name}:{self.server_port}" for name in (host, LOOPBACK, "localhost")}


class LocalHandler(BaseHTTPRequestHandler):
    """One request, GET or HEAD."""

    server: LocalServer
    headers_of_all: Mapping[str, str] = {"X-Content-Type-Options": "nosniff"}
    timeout = 30
    server_version = "rivermark"
    sys_version = ""

    @abstractmethod
    def respond(self) -> None:
        """Answer the request, which names this server."""

    def do_GET(self) -> None:
        """Answer, unless the request names another server."""
        if self.server.hosts is not None and self.headers.get("Host") not in self.server.hosts:
            self.send(HTTPStatus.MISDIRECTED_REQUEST, b"this server has another name\n")
        else:
            self.respond()

    do_HEAD = do_GET  # noqa: N815 - names of the base class

    def log_message(self, *_: object) -> None:
        """Say nothing: addresses may carry a token, and Prometheus asks every few seconds."""

    def send(
        self,
        status: HTTPStatus,
        body: bytes,
        kind: str = TEXT,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Send an answer; of HEAD only its headers."""
        self.send_response(status)
        sizes = {"Content-Type": kind, "Content-Length": str(len(body))}
        for name, value in {**self.headers_of_all, **sizes, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
