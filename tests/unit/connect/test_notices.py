"""Notices to a chat, a web service and a mailbox, taken by real servers on this machine."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator

import pytest

from rivermark.connect.notices import NotDelivered, check_address, deliver, described
from rivermark.model.errors import RivermarkError
from tests.web_service import WebService, serving

REFUSED = r"is none of https://|names no sender|does not belong"


@pytest.fixture
def web() -> Iterator[WebService]:
    """A service of which the path says with which status it answers."""
    with serving(lambda request: (int(request.path[1:4]), {})) as service:
        yield service


@pytest.fixture
def mail() -> Iterator[tuple[int, list[str]]]:
    """A mail server without TLS that takes one message, and the lines that it got."""
    lines: list[str] = []
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listening.accept()
        with connection, connection.makefile("rwb", buffering=0) as stream:
            stream.write(b"220 ready\r\n")
            in_text = False
            for raw in stream:
                line = raw.decode().rstrip("\r\n")
                lines.append(line)
                if in_text:
                    in_text = line != "."
                    if not in_text:
                        stream.write(b"250 taken\r\n")
                elif line.upper() == "DATA":
                    in_text = True
                    stream.write(b"354 go on\r\n")
                elif line.upper() == "QUIT":
                    stream.write(b"221 bye\r\n")
                    return
                else:
                    stream.write(b"250 ok\r\n")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listening.getsockname()[1], lines
    listening.close()


def test_a_service_gets_the_cause_its_status_and_the_message(web: WebService) -> None:
    deliver(f"{web.url}/200", "given_up:taxi", "it is given up", over=False)
    deliver(f"{web.url}/204", "given_up:taxi", "it is given up", over=True)

    assert [json.loads(request.body) for request in web.requests] == [
        {"cause": "given_up:taxi", "status": "open", "message": "it is given up"},
        {"cause": "given_up:taxi", "status": "over", "message": "it is given up"},
    ]


@pytest.mark.parametrize("status", [302, 404, 429, 503])
def test_an_answer_that_is_none_is_told_without_the_address(web: WebService, status: int) -> None:
    with pytest.raises(NotDelivered, match=f"http at 127.0.0.1 answered {status}") as refused:
        deliver(f"{web.url}/{status}?token=secret", "cause", "message", over=False)
    assert "secret" not in str(refused.value)


def test_a_message_is_no_markup_of_a_chat() -> None:
    from rivermark.connect import notices

    slack = notices._document("slack+https", "c", "<!channel> & <x|y>", over=False)
    teams = notices._document("teams+https", "c", "<b>", over=False)

    assert slack == {"text": "Open: c\n&lt;!channel&gt; &amp; &lt;x|y&gt;"}
    texts = [each["text"] for each in teams["attachments"][0]["content"]["body"]]
    assert texts == ["Open: c", "<b>"]


def test_a_mail_has_the_message_and_one_line_of_a_subject(mail: tuple[int, list[str]]) -> None:
    port, lines = mail
    address = f"smtp://127.0.0.1:{port}/?from=a@example.org&to=b@example.org&to=c@example.org"

    deliver(address, "given_up:taxi\r\nBcc: d@example.org", "it is given up", over=True)

    to = [line.lower() for line in lines if line.lower().startswith("rcpt to")]
    assert to == ["rcpt to:<b@example.org>", "rcpt to:<c@example.org>"]
    assert "Subject: rivermark: given_up:taxi Bcc: d@example.org is over" in lines
    assert "it is given up" in lines
    assert not [line for line in lines if line.startswith("Bcc")]


def test_a_password_is_not_sent_in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]

    def serve() -> None:
        connection, _ = listening.accept()
        with connection, connection.makefile("rwb", buffering=0) as stream:
            stream.write(b"220 ready\r\n")
            for line in stream:
                stream.write(b"221 bye\r\n" if line.upper() == b"QUIT\r\n" else b"250 ok\r\n")

    threading.Thread(target=serve, daemon=True).start()
    # Any name that is not this machine's own, and leads here.
    real = socket.create_connection
    monkeypatch.setattr(
        socket,
        "create_connection",
        lambda address, *rest, **more: real(("127.0.0.1", port), *rest, **more),
    )
    with pytest.raises(NotDelivered, match="offers no TLS: the password is not sent"):
        deliver(
            "smtp://ann:secret@mail.example:25/?from=a@example.org&to=b@example.org",
            "cause",
            "message",
            over=False,
        )
    listening.close()


@pytest.mark.parametrize(
    "address",
    [
        *("", "ops@example.org", "ftp://host/", "https://", "https://host:no/", "slack://x"),
        "https://ann:secret@host/",
        *("smtp://host/", "smtp://host/?from=a@example.org", "https://[::1/"),
    ],
)
def test_an_address_that_is_none_is_refused_without_showing_it(address: str) -> None:
    with pytest.raises(RivermarkError, match=REFUSED) as refused:
        check_address(address)
    assert not address or "no/" not in str(refused.value)


def test_what_is_secret_in_an_address_is_not_shown() -> None:
    slack = described("slack+https://hooks.slack.com/services/T0/B0/secret")
    mail = described("smtps://ann:secret@mail.example/?from=a@example.org&to=b@example.org")

    assert slack == "slack at hooks.slack.com"
    assert mail == "mail to b@example.org by mail.example"
