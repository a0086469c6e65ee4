"""Metrics, health and readiness over HTTP, for this machine alone unless told otherwise."""

from __future__ import annotations

from http import HTTPStatus
from threading import Lock
from typing import Final
from urllib.parse import urlsplit

from prometheus_client import CONTENT_TYPE_LATEST

from rivermark.monitor.local_server import LocalHandler, LocalServer
from rivermark.monitor.prometheus.metrics import DeploymentMetrics

PAGES: Final = b"there are /metrics, /health (this process) and /ready (the streams)\n"


class MetricsServer(LocalServer):
    """Answers `/metrics`, `/health` and `/ready`; on all addresses under any name."""

    def __init__(self, metrics: DeploymentMetrics, host: str, port: int) -> None:
        super().__init__(host, port, _Handler)
        self.metrics = metrics
        self.one_at_a_time = Lock()
        if host in ("", "0.0.0.0", "::"):  # noqa: S104 - asked for by who starts it
            self.hosts = None


class _Handler(LocalHandler):
    server: MetricsServer

    def respond(self) -> None:
        path = urlsplit(self.path).path
        if path == "/metrics":
            with self.server.one_at_a_time:
                text = self.server.metrics.text()
            self.send(HTTPStatus.OK, text, CONTENT_TYPE_LATEST)
        elif path == "/health":
            self.send(HTTPStatus.OK, b"ok\n")
        elif path == "/ready":
            dead = self.server.metrics.dead()
            status = HTTPStatus.SERVICE_UNAVAILABLE if dead else HTTPStatus.OK
            lines = [f"{stream}: {why}\n" for stream, why in dead.items()] or ["ready\n"]
            self.send(status, "".join(lines).encode())
        else:
            self.send(HTTPStatus.NOT_FOUND, PAGES)
