"""A webhook whose service means no good: each row is in the dead letters, in the time there is."""

from __future__ import annotations

import json
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread

import pytest
from deltalake import DeltaTable

from rivermark import DeclarationError, RivermarkError
from rivermark.lake.lake import Lake
from rivermark.model.sink import SinkContext
from rivermark.sinks import WebhookSink
from rivermark.sinks.undelivered import undelivered_of
from tests.unit.sinks.conftest import FARES, context, fares
from tests.web_service import Reply, Request, serving

HEADERS = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
CHUNKED = HEADERS + b"Transfer-Encoding: chunked\r\n\r\n"
Talk = Callable[[socket.socket], None]


@pytest.fixture
def where(tmp_path: Path) -> SinkContext:
    return context(Lake(str(tmp_path)))


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rivermark.sinks.webhook.time.sleep", lambda _: None)


@contextmanager
def talking(talk: Talk, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """The address of a server that hears a request, and says to each client what `talk` says."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                client, _ = server.accept()
                Thread(target=answer, args=(client,), daemon=True).start()

    def answer(client: socket.socket) -> None:
        with suppress(OSError), client:
            connected = client if tls is None else tls.wrap_socket(client, server_side=True)
            connected.recv(65_536)
            talk(connected)
            # A socket that closes with something unread resets the connection: no end is seen.
            connected.shutdown(socket.SHUT_WR)
            while connected.recv(65_536):
                pass

    Thread(target=serve, daemon=True).start()
    yield f"127.0.0.1:{server.getsockname()[1]}"
    # Without it the thread that accepts would hold the port.
    with suppress(OSError):
        server.shutdown(socket.SHUT_RDWR)
    server.close()


def reasons(where: SinkContext, sink: WebhookSink) -> list[str]:
    """Why a row and another one were not delivered; their bodies are among the dead letters."""
    with closing(sink.open(where)) as writer:
        writer.write(fares((1, 1.0), (2, 2.0)), where.origin.batch(0))
    table = DeltaTable(Lake(where.root).path(undelivered_of(FARES))).to_pyarrow_table()
    assert [json.loads(body)["ride"] for body in table["body"].to_pylist()] == [1, 2]
    return list(table["reason"].to_pylist())


def drip(first: bytes, drop: bytes) -> Talk:
    pause = Event()

    def talk(client: socket.socket) -> None:
        client.sendall(first)
        while True:
            client.sendall(drop)
            pause.wait(0.01)

    return talk


def say(*parts: bytes) -> Talk:
    def talk(client: socket.socket) -> None:
        for part in parts:
            client.sendall(part)

    return talk


def flood(first: bytes) -> Talk:
    def talk(client: socket.socket) -> None:
        client.sendall(first)
        while True:
            client.sendall(b"x" * 65_536)

    return talk


@pytest.mark.parametrize(
    "talk",
    [
        pytest.param(drip(HEADERS + b"Content-Length: 100000\r\n\r\n", b"x"), id="body"),
        pytest.param(drip(CHUNKED, b"1\r\nx\r\n"), id="chunks"),
        pytest.param(drip(HEADERS + b"X-Header: ", b"x"), id="headers"),
        pytest.param(drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), id="interim answers"),
    ],
)
def test_an_answer_that_drips_has_its_time_as_a_whole(where: SinkContext, talk: Talk) -> None:
    with talking(talk) as address:
        sink = WebhookSink(
            url=f"http://{address}/", attempts=1, timeout=timedelta(milliseconds=150)
        )
        assert reasons(where, sink) == ["no answer within 0.15 seconds"] * 2


@pytest.mark.parametrize(
    ("talk", "reason"),
    [
        (flood(HEADERS + b"Content-Length: 1000000000000000\r\n\r\n"), "more than 4 MiB"),
        (flood(HEADERS + b"\r\n"), "more than 4 MiB"),
        (flood(CHUNKED + b"-1\r\n"), "more than 4 MiB"),
        (flood(HEADERS + b"X-Header: "), "LineTooLong"),
        (say(CHUNKED + b"-7\r\nx\r\n"), "ValueError"),
        (say(CHUNKED + b"xyz\r\n"), "IncompleteRead"),
        (say(HEADERS + b"Content-Length: 9\r\n\r\nx"), "IncompleteRead.*8 more expected"),
        (say(HEADERS + b"Content-Length: 9\r\n\r\n"), "IncompleteRead.*9 more expected"),
        (say(b"\x16\x03\x01\x02\x00\x01\x00\xff\xff"), "BadStatusLine|RemoteDisconnected"),
        (say(), "RemoteDisconnected"),
    ],
)
def test_an_answer_that_is_none_is_named_and_bounded(
    where: SinkContext, talk: Talk, reason: str
) -> None:
    with talking(talk) as address:
        shown = reasons(where, WebhookSink(url=f"http://{address}/", attempts=2))
    assert all(re.search(reason, each) for each in shown), shown


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_leads_no_row_and_no_secret_elsewhere(
    where: SinkContext, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setenv("HOOK_TOKEN", "hunter2")
    with serving(lambda _: (200, b"")) as other:

        def redirect(_: Request) -> Reply:
            return status, b"", {"Location": f"{other.url}/metadata"}

        with serving(redirect) as service:
            sink = WebhookSink(url=service.url, headers={"Authorization": "$HOOK_TOKEN"})
            assert reasons(where, sink) == [f"answered {status}"] * 2
            assert len(service.requests) == 2
        assert other.connections == 0


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl for a certificate")
@pytest.mark.parametrize("subject", ["127.0.0.1", "127.0.0.2"])
def test_a_certificate_that_no_authority_signed_is_told_nothing(
    where: SinkContext, tmp_path: Path, subject: str
) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=hook"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    name = ["-addext", f"subjectAltName=IP:{subject}"]
    command = ["openssl", "req", "-x509", *kind, *name, *files]
    subprocess.run(command, check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    heard = Event()
    with talking(lambda _: heard.set(), tls) as address:
        [first, second] = reasons(where, WebhookSink(url=f"https://{address}/", attempts=1))
    assert "CERTIFICATE_VERIFY_FAILED" in first
    assert first == second
    assert not heard.is_set()


def test_secrets_that_cannot_be_sent_are_refused_and_not_shown(
    where: SinkContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_TOKEN", "hunter2\n")
    monkeypatch.setenv("HOOK", "http://127.0.0.1:1/hunter2 ")
    sink = WebhookSink(url="http://127.0.0.1:1", headers={"Authorization": "$HOOK_TOKEN"})
    with pytest.raises(RivermarkError, match="webhook header Authorization has a line") as raised:
        sink.open(where)
    assert "hunter2" not in str(raised.value)
    with pytest.raises(
        DeclarationError, match=r"webhook \$HOOK: the URL contains a space"
    ) as raised:
        WebhookSink(url="$HOOK").open(where)
    assert "hunter2" not in str(raised.value)
