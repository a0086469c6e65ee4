"""Dagster's page behind a guard: no page of another site can read it, start a run or stop a sensor.

    python -m rivermark.dagster.ui.guard --workspace FILE --host 127.0.0.1 --port 3000

Dagster's web server takes a mutation by GET, of any origin, under any name of this machine: a
picture in a page that a browser has open would be enough. So a request has to name this server in
`Host`, and where a browser says which page it comes from, that has to be one of this server's.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from html import escape
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import dagster_webserver.app
from dagster_webserver.cli import cli
from dagster_webserver.webserver import DagsterWebserver
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rivermark.monitor.dashboard.page_links import page_url
from rivermark.monitor.dashboard.refresh import page_path
from rivermark.settings import Settings

READING: Final = frozenset({"GET", "HEAD"})
OWN: Final = frozenset({"same-origin", "none"})
"""What a browser says of a request of the page itself, and of an address that was typed."""
POLICY_VIOLATION: Final = 1008


class Guard:
    """Refuses requests that another site's page has made, and those under another name."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app = app
        self._hosts = {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with why it is not."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, _unframed(send))
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": POLICY_VIOLATION})
        else:
            status, why = refusal
            await PlainTextResponse(f"{why}\n", status)(scope, receive, send)

    def _refusal(self, scope: Scope) -> tuple[HTTPStatus, str] | None:
        headers, is_http = Headers(scope=scope), scope["type"] == "http"
        if headers.get("host", "").lower() not in self._hosts:
            return HTTPStatus.MISDIRECTED_REQUEST, (
                "this server has another name; where it is reached by this one, set "
                "RIVERMARK_UI_HOSTS to a JSON list with it"
            )
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() not in self._hosts:
            return HTTPStatus.FORBIDDEN, "this request comes from a page of another site"
        reads = is_http and scope["method"] in READING
        navigates = reads and headers.get("sec-fetch-mode") == "navigate"
        if headers.get("sec-fetch-site", "none") not in OWN and not (
            navigates and headers.get("sec-fetch-dest", "document") == "document"
        ):
            return HTTPStatus.FORBIDDEN, "this request comes from a page of another site"
        asks = "query" in parse_qs(scope.get("query_string", b"").decode("latin-1"))
        if reads and asks and scope["path"].rstrip("/").endswith("/graphql"):
            return HTTPStatus.METHOD_NOT_ALLOWED, "send GraphQL by POST"
        return None


def _unframed(send: Send) -> Send:
    """Let no other site show the page within its own, where clicks could be led."""

    async def with_header(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message)["X-Frame-Options"] = "SAMEORIGIN"
        await send(message)

    return with_header


def hosts_of(host: str, port: int, others: Collection[str] = ()) -> Iterator[str]:
    """The names under which the page is reached: this machine's own, and those that are set."""
    for name in {host, "127.0.0.1", "localhost", "[::1]"}:
        yield f"{name}:{port}"
    yield from others


DASHBOARD: Final = (
    '<a href="{address}" target="_blank" rel="noopener" style="position:fixed;right:16px;'
    "bottom:16px;z-index:9;padding:6px 14px;border-radius:16px;background:#0a58a5;color:#fff;"
    'font:600 13px system-ui,sans-serif;text-decoration:none">Dashboard</a></body>'
)
"""The link to the dashboard on each of Dagster's pages, also on that which it lands on."""


class GuardedWebserver(DagsterWebserver[Any, Any]):
    """Dagster's web server, with the guard before all that it does, and a link to the dashboard."""

    hosts: Collection[str] = ()
    dashboard: str = ""

    def index_html_endpoint(self, request: Request) -> HTMLResponse:
        """Dagster's page, which draws itself by scripts, and the link beside what these draw."""
        page: HTMLResponse = super().index_html_endpoint(request)
        link = DASHBOARD.format(address=escape(self.dashboard, quote=True))
        content = bytes(page.body).replace(b"</body>", link.encode())
        headers = {k: v for k, v in page.headers.items() if k != "content-length"}
        return HTMLResponse(content, headers=headers)

    def build_middleware(self) -> list[Middleware]:
        """The guard first."""
        return [Middleware(Guard, hosts=self.hosts), *super().build_middleware()]


def main() -> None:
    """Serve Dagster's page with its own command line."""
    words = dict(zip(sys.argv, sys.argv[1:], strict=False))
    port, host = int(words.get("--port", 3000)), words.get("--host", "127.0.0.1")
    settings = Settings()
    GuardedWebserver.hosts = {*hosts_of(host, port, settings.ui_hosts)}
    GuardedWebserver.dashboard = page_url(settings, page_path(settings))
    # Its command line makes the server by this name.
    vars(dagster_webserver.app)["DagsterWebserver"] = GuardedWebserver
    cli()


if __name__ == "__main__":
    main()
