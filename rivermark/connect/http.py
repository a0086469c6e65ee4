"""HTTP to one server: its connection is kept open, every answer has its time, redirects are none.

A redirect could lead secrets to another host, so it is an answer like any other.
"""

from __future__ import annotations

import io
import random
import re
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http.client import (
    HTTPConnection,
    HTTPException,
    HTTPResponse,
    HTTPSConnection,
    IncompleteRead,
    parse_headers,
)
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from rivermark.connect.environment import resolved_settings
from rivermark.model.errors import DeclarationError, RivermarkError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

LONGEST_REPLY: Final = 4 << 20
"""Bytes of an answer that are read, its headers among them."""
FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 60.0
"""Seconds before another attempt, also where a server asks for more."""
PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same request may be answered otherwise."""

HINTS: Final = (102, 199)
"""Statuses that announce another one, from the first to the last."""

SECRET: Final = re.compile(r"authorization|cookie|token|secret|signature|key", re.IGNORECASE)
"""Headers whose values are secrets."""
HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""Names that a header may have."""
UNSENDABLE: Final = re.compile(r"[^!-~]")
"""Characters that no path of a request may have."""
SENDABLE: Final = re.compile(r"[ -~\xa0-\xff]*")
"""Values that a header may have."""


class HttpFailed(RivermarkError):
    """A request was not answered: no connection, no time left, or no HTTP."""


class Reply(NamedTuple):
    """The reply of a server; `retry_after` is how many seconds it asks to be left alone."""

    status: int
    body: bytes
    retry_after: float | None


def server_of(url: str) -> SplitResult:
    """A URL in parts; raises DeclarationError where it is none of HTTP, or holds a password."""
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        is_url &= not re.search(r"\s", parts.netloc)
    except ValueError:
        is_url = False
    if not is_url:
        raise DeclarationError("the URL must begin with http:// or https:// and name a server")
    if parts.username or parts.password:
        raise DeclarationError(
            "a URL with a password does not belong in a declaration; send a header whose value is "
            "that of an environment variable"
        )
    if UNSENDABLE.search(parts.path + parts.query):
        # An error of the connection would show the path, and services have their secrets in it.
        raise DeclarationError(
            "the URL contains a space or a character that is not ASCII: write it as %20 and so on"
        )
    return parts


def check_headers(what: str, headers: Mapping[str, str]) -> None:
    """Raise DeclarationError where the value of a secret header is written down, or none is one."""
    for name, value in headers.items():
        if not HEADER.fullmatch(name) or not SENDABLE.fullmatch(value):
            raise DeclarationError(
                f"{what}: no header can be {name!r}, or have its value: a name has no blanks, and "
                "neither has line breaks"
            )
        if SECRET.search(name) and not value.startswith("$"):
            raise DeclarationError(
                f"{what}: the header {name} holds a secret; name an environment variable that "
                f'holds its value, headers={{"{name}": "$NAME"}}'
            )


def resolved_headers(what: str, headers: Mapping[str, str]) -> dict[str, str]:
    """The headers with the values of the environment.

    Raises:
        RivermarkError: a variable is not set, or a value cannot be sent.
    """
    resolved = resolved_settings(what, headers)
    for name, value in resolved.items():
        if not SENDABLE.fullmatch(value):
            raise RivermarkError(
                f"the {what} header {name} has a line break or another character that headers "
                "cannot contain"
            )
    return resolved


class _Received(io.RawIOBase):
    """The bytes that a socket receives until a moment and up to a length, however they come in.

    A time-out of the socket is one of each read: a byte now and then would hold a client for hours.
    """

    def __init__(self, connected: socket.socket, until: float) -> None:
        self._socket = connected
        self._raw = connected.makefile("rb", buffering=0)
        self._until = until
        self._left = LONGEST_REPLY

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        self._socket.settimeout(left_until(self._until))
        count = self._raw.readinto(buffer)
        self._left -= count or 0
        if self._left < 0:
            raise OSError(f"an answer of more than {LONGEST_REPLY >> 20} MiB")
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Final(HTTPResponse):
    """A response that is the last one: Python takes hints before it, such as a 103, for it."""

    def _read_status(self) -> tuple[str, int, str]:
        while True:
            version, status, reason = super()._read_status()  # type: ignore[misc]
            if not HINTS[0] <= status <= HINTS[1]:
                return version, status, reason
            parse_headers(self.fp)


def left_until(moment: float) -> float:
    """Seconds until a moment of the monotonic clock; raises TimeoutError when it is over."""
    left = moment - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


class HttpClient:
    """One connection to the server of a URL, used by one thread at a time.

    `timeout` is that of a connection, and that of a request with its whole answer.
    """

    def __init__(self, url: str, timeout: timedelta) -> None:
        parts = server_of(url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._timeout = timeout.total_seconds()
        self._connection = kind(parts.hostname or "", parts.port, timeout=self._timeout)
        self._connection.response_class = self._response  # type: ignore[assignment]
        self._until = 0.0
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
        self._until = time.monotonic() + self._timeout
        try:
            try:
                response = self._exchange(method, path, headers, body)
            except (ConnectionError, HTTPException):
                if is_new or self._is_aborted:
                    raise
                # A server may close a connection that has rested.
                self._connection.close()
                response = self._exchange(method, path, headers, body)
            # Without a limit as much memory is taken as the server says that there is to come.
            content = response.read(LONGEST_REPLY)
            if response.length:
                raise IncompleteRead(content, response.length)
        except TimeoutError:
            self._connection.close()
            raise HttpFailed(f"no answer within {self._timeout:g} seconds") from None
        except (OSError, HTTPException, ValueError) as error:
            self._connection.close()
            raise HttpFailed(f"{type(error).__name__}: {error}".removesuffix(": ")) from None
        return Reply(response.status, content, retry_after(response.getheader("Retry-After")))

    def _exchange(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> HTTPResponse:
        if self._connection.sock is None:
            self._connection.connect()
        self._connection.sock.settimeout(left_until(self._until))
        self._connection.request(method, path, body, dict(headers))
        return self._connection.getresponse()

    def _response(self, connected: socket.socket, *, method: str) -> HTTPResponse:
        response = _Final(connected, method=method)
        response.fp.close()
        response.fp = io.BufferedReader(_Received(connected, self._until))
        return response

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
