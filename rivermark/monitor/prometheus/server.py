"""Metrics, health and readiness over HTTP, for this machine alone unless told otherwise."""

from __future__ import annotations

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Final
from urllib.parse import urlsplit

from prometheus_client import CONTENT_TYPE_LATEST

from rivermark.monitor.prometheus.metrics import DeploymentMetrics

TEXT: Final = "text/plain; charset=utf-8"
PAGES: Final = "there are /metrics, /health (this process) and /ready (the streams)\n"


class MetricsServer(ThreadingHTTPServer):
    """Answers `/metrics`, `/health` and `/ready`.

    Raises OSError where the port is taken. Under another name than `host` and this machine's own it
    is not served: a page of another site that a browser has open could give itself one.
    """

    def __init__(self, metrics: DeploymentMetrics, host: str, port: int) -> None:
        super().__init__((host, port), _Handler)
        self.metrics = metrics
        self.one_at_a_time = Lock()
        names = {host, "127.0.0.1", "localhost"}
        open_to_all = host in ("", "0.0.0.0", "::")  # noqa: S104 - asked for by who starts it
        self.hosts = None if open_to_all else {f"{name}:{self.server_port}" for name in names}


class _Handler(BaseHTTPRequestHandler):
    server: MetricsServer
    timeout = 30
    server_version = "rivermark"
    sys_version = ""

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if self.server.hosts is not None and self.headers.get("Host") not in self.server.hosts:
            self._send(HTTPStatus.MISDIRECTED_REQUEST, "this server has another name\n")
        elif path == "/metrics":
            with self.server.one_at_a_time:
                text = self.server.metrics.text()
            self._send(HTTPStatus.OK, text.decode(), CONTENT_TYPE_LATEST)
        elif path == "/health":
            self._send(HTTPStatus.OK, "ok\n")
        elif path == "/ready":
            dead = self.server.metrics.dead()
            status = HTTPStatus.SERVICE_UNAVAILABLE if dead else HTTPStatus.OK
            self._send(status, "".join(f"{each}\n" for each in dead) or "ready\n")
        else:
            self._send(HTTPStatus.NOT_FOUND, PAGES)

    do_HEAD = do_GET  # noqa: N815 - names of the base class

    def log_message(self, *_: object) -> None:
        """Say nothing: Prometheus asks every few seconds."""

    def _send(self, status: HTTPStatus, text: str, kind: str = TEXT) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
