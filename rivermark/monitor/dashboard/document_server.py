"""The document server: dashboard, failing rows and Data Docs over HTTP, for this machine alone.

    rivermark dashboard --serve     # or, as `make ui` has it beside Dagster's page:
    python -m rivermark.monitor.dashboard.document_server

The dashboard is drawn again while somebody looks at it. The server has files of the folders that
the platform draws pages into, nothing else, and each of them only for who has the token: the links
in Dagster carry it, and a cookie keeps it. Pages of other sites that a browser has open know
neither, and other names of this machine are refused.
"""

from __future__ import annotations

import hmac
import mimetypes
import subprocess
import sys
import threading
import time
from email.utils import formatdate
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import IO, Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

from rivermark.monitor.dashboard.page_links import FOLDERS, TOKEN, make_token
from rivermark.monitor.dashboard.refresh import DRAWN
from rivermark.monitor.local_server import LOOPBACK, LocalHandler, LocalServer
from rivermark.runtime.supervision.live_process import on_interrupt
from rivermark.settings import Settings

COOKIE: Final = "rivermark_pages"
FIRST_PAGE: Final = "/pages/dashboard.html"
PROBLEM: Final = "Rivermark-Problem"
"""The header with what kept a page from being drawn, for the page to show."""
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
EVERY: Final = 30.0
"""Seconds between two drawings, at least."""
SHARE: Final = 10
"""A drawing is followed by so many times its own seconds without one: by a tenth of a core."""


class LivePage:
    """Draws a home's pages again when they are looked at and are old; asked by several threads.

    Checks are not evaluated: their newest results are shown, which runs and schedules record.
    """

    def __init__(self, settings: Settings) -> None:
        self._command = (
            *(sys.executable, "-c", "from rivermark.cli.main import app; app()"),
            *("dashboard", "--no-checks", "--json"),
            *("--home", str(settings.home)),
        )
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._next = 0.0
        self._problem = ""

    def seen(self, page: Path) -> str:
        """Take note that a page is looked at; returns why it could not be drawn last, if so."""
        old = time.time() - page.stat().st_mtime > EVERY
        with self._lock:
            drawing = self._thread is not None and self._thread.is_alive()
            if old and not drawing and time.monotonic() >= self._next:
                self._thread = threading.Thread(target=self._draw, daemon=True)
                self._thread.start()
            return self._problem

    def _draw(self) -> None:
        began = time.monotonic()
        # Below what runs the streams.
        with subprocess.Popen(
            ("nice", "-n", "10", *self._command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stderr is not None  # noqa: S101 - a pipe was asked for
            last = _last_line(process.stderr)
        took = time.monotonic() - began
        with self._lock:
            self._problem = last if process.returncode else ""
            self._next = time.monotonic() + max(EVERY, SHARE * took)


def _last_line(stderr: IO[bytes]) -> str:
    """The sentence with which the console ends, as a header may have it."""
    lines = stderr.read().decode(errors="replace").split("\n")
    written = [line.strip() for line in lines if line.strip()]
    text = written[-1] if written else "the dashboard could not be drawn"
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in text)[:300]


class DocumentServer(LocalServer):
    """Serves a home's pages on the loopback address."""

    def __init__(self, settings: Settings, port: int, drawing: LivePage | None = None) -> None:
        self.home, self.drawing = settings.home, drawing
        self.token = make_token(settings)
        super().__init__(LOOPBACK, port, Handler)
        self.hosts = {*(self.hosts or ()), urlsplit(settings.pages_url).netloc}

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


class Handler(LocalHandler):
    """One request: GET or HEAD of a page."""

    server: DocumentServer
    headers_of_all = HEADERS

    def respond(self) -> None:
        """Send a page, or the address without the token once a cookie keeps it."""
        address = urlsplit(self.path)
        path = unquote(address.path)
        if tokens := parse_qs(address.query).get(TOKEN):
            self._keep(tokens[0], path)
        elif not self._is_token(self._cookie()):
            self._refuse(HTTPStatus.FORBIDDEN, NO_TOKEN)
        elif path == "/":
            self._redirect(FIRST_PAGE)
        elif (file := self.server.file_of(path)) is None:
            self._refuse(HTTPStatus.NOT_FOUND, NO_PAGE)
        else:
            kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
            self.send(HTTPStatus.OK, file.read_bytes(), kind, self._state_of(file))

    def _keep(self, token: str, path: str) -> None:
        if self._is_token(token):
            cookie = f"{COOKIE}={self.server.token}; Path=/; HttpOnly; SameSite=Lax"
            # One slash: two would name another machine.
            self._redirect(f"/{quote(path.lstrip('/'))}", cookie)
        else:
            self._refuse(HTTPStatus.FORBIDDEN, NO_TOKEN)

    def _state_of(self, file: Path) -> dict[str, str]:
        """The moment of the page, by which it finds a newer one, and why there is none."""
        problem = ""
        if self.server.drawing and file.name in DRAWN:
            problem = self.server.drawing.seen(file)
        state = {"Last-Modified": formatdate(file.stat().st_mtime, usegmt=True)}
        return state | ({PROBLEM: problem} if problem else {})

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
        self.send(HTTPStatus.SEE_OTHER, b"", headers=headers)

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self.send(status, f"{why}\n".encode())


def main(settings: Settings | None = None) -> int:
    """Serve until a signal; returns the exit code."""
    on_interrupt(lambda *_: sys.exit(0))
    settings = settings or Settings()
    try:
        server = DocumentServer(settings, settings.pages_port, LivePage(settings))
    except OSError as error:
        print(f"rivermark: port {settings.pages_port} of {LOOPBACK}: {error.strerror}")  # noqa: T201
        return 1
    with server:
        server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
