"""The document server: dashboard, failing rows and Data Docs over HTTP, for this machine alone.

    python -m rivermark.dagster.ui.documents

It serves files of the folders that the platform draws pages into, nothing else, and each of them
only to who has the token: the links in Dagster carry it, and a cookie keeps it. Pages of other
sites that a browser has open know neither, and other names of this machine are refused.
"""

from __future__ import annotations

import hmac
import mimetypes
import sys
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

from rivermark.dagster.jobs.page_links import FOLDERS, TOKEN, make_token
from rivermark.dagster.ui.processes import on_interrupt
from rivermark.settings import Settings

LOOPBACK: Final = "127.0.0.1"
COOKIE: Final = "rivermark_pages"
FIRST_PAGE: Final = "/pages/dashboard.html"
HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
NO_PAGE: Final = (
    "no such page: it is gone, or not drawn yet; `rivermark dashboard` draws the dashboard, and so "
    "does the job `dashboard` each hour; runs that evaluate suites draw Data Docs"
)
NO_TOKEN: Final = "open this page by its link in Dagster: the link carries the token that it needs"  # noqa: S105


class DocumentServer(ThreadingHTTPServer):
    """Serves a home's pages on the loopback address."""

    def __init__(self, settings: Settings, port: int) -> None:
        self.home = settings.home
        self.token = make_token(settings)
        super().__init__((LOOPBACK, port), Handler)
        own = (f"{LOOPBACK}:{self.server_port}", f"localhost:{self.server_port}")
        self.hosts = {*own, urlsplit(settings.pages_url).netloc}

    def file_of(self, path: str) -> Path | None:
        """The file that an address means, if it is one of the served folders'.

        A folder is found by its path in the home too: so pages lead to each other as on disk.
        """
        places = {f"/{name}/": folder for name, folder in FOLDERS.items()}
        places |= {f"/{folder.as_posix()}/": folder for folder in FOLDERS.values()}
        start = next((start for start in places if path.startswith(start)), None)
        if start is None or "\x00" in path:
            return None
        root, inside = (self.home / places[start]).resolve(), path.removeprefix(start)
        # Links are followed first, so that none leads out.
        file = (root / inside).resolve()
        hidden = any(part.startswith(".") for part in file.parts[len(root.parts) :])
        inside_root = file.is_relative_to(root) and not hidden
        return file if inside_root and file.is_file() else None


class Handler(BaseHTTPRequestHandler):
    """One request: GET or HEAD of a page."""

    server: DocumentServer
    timeout = 30
    server_version = "rivermark"
    sys_version = ""

    def do_GET(self) -> None:
        """Send a page, or the address without the token once a cookie keeps it."""
        address = urlsplit(self.path)
        path = unquote(address.path)
        if self.headers.get("Host") not in self.server.hosts:
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST, "this server has another name")
        elif tokens := parse_qs(address.query).get(TOKEN):
            self._keep(tokens[0], path)
        elif not self._is_token(self._cookie()):
            self._refuse(HTTPStatus.FORBIDDEN, NO_TOKEN)
        elif path == "/":
            self._redirect(FIRST_PAGE)
        elif (file := self.server.file_of(path)) is None:
            self._refuse(HTTPStatus.NOT_FOUND, NO_PAGE)
        else:
            kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
            self._send(HTTPStatus.OK, kind, file.read_bytes())

    do_HEAD = do_GET  # noqa: N815 - names of the base class

    def log_message(self, *_: object) -> None:
        """Say nothing: addresses carry the token."""

    def _keep(self, token: str, path: str) -> None:
        if self._is_token(token):
            cookie = f"{COOKIE}={self.server.token}; Path=/; HttpOnly; SameSite=Lax"
            # One slash: two would name another machine.
            self._redirect(f"/{quote(path.lstrip('/'))}", cookie)
        else:
            self._refuse(HTTPStatus.FORBIDDEN, NO_TOKEN)

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self.server.token.encode())

    def _cookie(self) -> str:
        try:
            kept = SimpleCookie(self.headers.get("Cookie", "")).get(COOKIE)
        except CookieError:
            return ""
        return kept.value if kept else ""

    def _redirect(self, to: str, cookie: str | None = None) -> None:
        headers = {"Location": to} | ({"Set-Cookie": cookie} if cookie else {})
        self._send(HTTPStatus.SEE_OTHER, "text/plain; charset=utf-8", b"", headers)

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self._send(status, "text/plain; charset=utf-8", f"{why}\n".encode())

    def _send(
        self, status: HTTPStatus, kind: str, body: bytes, headers: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        sizes = {"Content-Type": kind, "Content-Length": str(len(body))}
        for name, value in {**HEADERS, **sizes, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def main() -> int:
    """Serve until a signal; returns the exit code."""
    on_interrupt(lambda *_: sys.exit(0))
    settings = Settings()
    try:
        server = DocumentServer(settings, settings.pages_port)
    except OSError as error:
        print(f"rivermark: port {settings.pages_port} of {LOOPBACK}: {error.strerror}")  # noqa: T201
        return 1
    with server:
        server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
