"""HTTP to one server: its connection is kept open, every answer has its time, redirects are none.

A redirect could lead secrets to another host, so it is an answer like any other.
"""

from __future__ import annotations

import random
import re
import socket
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from rivermark.model.errors import DeclarationError, RivermarkError

LONGEST_REPLY: Final = 4 << 20
"""Bytes of an answer that are read."""
FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 60.0
"""Seconds before another attempt, also where a server asks for more."""
PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same request may be answered otherwise."""

SECRET: Final = re.compile(r"authorization|cookie|token|secret|signature|key", re.IGNORECASE)
"""Headers whose values are secrets."""


class HttpFailed(RivermarkError):
    """A request was not answered: no connection, no time left, or no HTTP."""


class Reply(NamedTuple):
    """What a server answered; `retry_after` is how many seconds it asks to be left alone."""

    status: int
    body: bytes
    retry_after: float | None


def server_of(url: str) -> SplitResult:
    """A URL in parts; raises DeclarationError where it is none of HTTP, or holds a password."""
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise DeclarationError("the URL is to begin with http:// or https:// and name a server")
    if parts.username or parts.password:
        raise DeclarationError(
            "a URL with a password does not belong in a declaration; send a header whose value is "
            "that of an environment variable"
        )
    return parts


def check_headers(what: str, headers: Mapping[str, str]) -> None:
    """Raise DeclarationError where the value of a secret header is written down."""
    for name, value in headers.items():
        if SECRET.search(name) and not value.startswith("$"):
            raise DeclarationError(
                f"{what}: the header {name} holds a secret; name an environment variable that "
                f'holds its value, headers={{"{name}": "$NAME"}}'
            )


class HttpClient:
    """One connection to the server of a URL, used by one thread at a time."""

    def __init__(self, url: str, timeout: timedelta) -> None:
        parts = server_of(url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._connection = kind(parts.hostname or "", parts.port, timeout=timeout.total_seconds())
        self._is_aborted = False
        self.path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> Reply:
        """Send a request and read its answer.

        Raises:
            HttpFailed: there is none.
        """
        is_new = self._connection.sock is None
        self._is_aborted = False
        try:
            try:
                response = self._exchange(method, path, headers, body)
            except (ConnectionError, HTTPException):
                if is_new or self._is_aborted:
                    raise
                # A server may close a connection that has rested.
                self._connection.close()
                response = self._exchange(method, path, headers, body)
            content = response.read(LONGEST_REPLY + 1)
        except TimeoutError:
            self._connection.close()
            raise HttpFailed(f"no answer within {self._connection.timeout:g} seconds") from None
        except (OSError, HTTPException) as error:
            self._connection.close()
            raise HttpFailed(f"{type(error).__name__}: {error}".removesuffix(": ")) from None
        if len(content) > LONGEST_REPLY:
            self._connection.close()
            raise HttpFailed(f"an answer of more than {LONGEST_REPLY >> 20} MiB")
        return Reply(response.status, content, retry_after(response.getheader("Retry-After")))

    def _exchange(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> HTTPResponse:
        self._connection.request(method, path, body, dict(headers))
        return self._connection.getresponse()

    def abort(self) -> None:
        """Make a request of another thread fail now."""
        self._is_aborted = True
        connected = self._connection.sock
        if connected is not None:
            with suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        self._connection.close()


def retry_after(value: str | None) -> float | None:
    """The seconds of a `Retry-After` header, which is a number or a date; None without one."""
    if not value:
        return None
    try:
        if value.isdigit():
            return float(value)
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return None


def pause_before(attempt: int, requested: float | None = None) -> float:
    """Seconds to wait before the attempt of this number: what was requested, or doubled each time.

    At random between half of it and the whole: clients that failed together do not come together.
    """
    if requested is not None:
        return min(requested, LONGEST_PAUSE)
    longest = min(FIRST_PAUSE * 2.0 ** (attempt - 2), LONGEST_PAUSE)
    return longest * random.uniform(0.5, 1)  # noqa: S311 - no secret
