"""Delivery of a notice to an address: a chat, a web service or a mailbox.

    python -m rivermark.connect.notices NUMBER CAUSE MESSAGE

Run like a command of the deployment's own, so that a service that hangs is killed like one. The
addresses hold secrets: they come by the environment, and only their number is an argument.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from rivermark.model.errors import RivermarkError

VARIABLE: Final = "RIVERMARK_NOTIFY_TO"
SECONDS: Final = 20.0
CHATS: Final = ("slack+https", "teams+https", "https", "http")
MAIL: Final = ("smtp", "smtps")
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
EXAMPLES: Final = (
    "https://host/path, slack+https://hooks.slack.com/..., teams+https://..., or "
    "smtp://user:password@host:587/?from=a@example.org&to=b@example.org"
)


class NotDelivered(RivermarkError):
    """A service or mail server did not take a notice."""


def check_address(address: str) -> None:
    """Raise RivermarkError where an address is none; the error does not show it."""
    parts = _parts(address)
    if parts.scheme in CHATS:
        from rivermark.connect.http import server_of

        server_of(_url(address))
    elif not (_of(parts, "from") and _of(parts, "to")):
        raise RivermarkError(
            f"{described(address)} names no sender or no receiver: end it with "
            "?from=a@example.org&to=b@example.org"
        )


def described(address: str) -> str:
    """An address without what may be secret in it."""
    parts = _parts(address)
    if parts.scheme in MAIL:
        return f"mail to {', '.join(_of(parts, 'to')) or 'no one'} by {parts.hostname}"
    return f"{parts.scheme.partition('+')[0]} at {parts.hostname}"


def deliver(address: str, cause: str, message: str, *, over: bool) -> None:
    """Send a notice, or that its cause is over.

    Raises:
        NotDelivered: with why, and without the address.
    """
    parts = _parts(address)
    if parts.scheme in MAIL:
        _mail(parts, cause, message, over=over)
        return
    # Here and below, because every start reads the settings, and few send a notice.
    from rivermark.connect.http import HttpClient, HttpFailed

    body = json.dumps(_document(parts.scheme, cause, message, over=over)).encode()
    client = HttpClient(_url(address), timedelta(seconds=SECONDS))
    try:
        reply = client.request("POST", client.path, {"Content-Type": "application/json"}, body)
    except HttpFailed as error:
        raise NotDelivered(f"{described(address)}: {error}") from None
    finally:
        client.close()
    if not 200 <= reply.status < 300:
        said = reply.body[:200].decode(errors="replace")
        raise NotDelivered(f"{described(address)} answered {reply.status}: {said}")


def _url(address: str) -> str:
    return address.removeprefix("slack+").removeprefix("teams+")


def _document(scheme: str, cause: str, message: str, *, over: bool) -> dict[str, Any]:
    title = f"{'Over' if over else 'Open'}: {cause}"
    if scheme.startswith("slack"):
        # Slack's own marks are these three characters.
        text = f"{title}\n{message}".replace("&", "&amp;")
        return {"text": text.replace("<", "&lt;").replace(">", "&gt;")}
    if scheme.startswith("teams"):
        blocks = [
            {"type": "TextBlock", "text": title, "weight": "bolder", "wrap": True},
            {"type": "TextBlock", "text": message, "wrap": True},
        ]
        card = {"type": "AdaptiveCard", "version": "1.4", "body": blocks}
        kind = "application/vnd.microsoft.card.adaptive"
        return {"type": "message", "attachments": [{"contentType": kind, "content": card}]}
    return {"cause": cause, "status": "over" if over else "open", "message": message}


def _mail(parts: SplitResult, cause: str, message: str, *, over: bool) -> None:
    import smtplib
    import ssl
    from email.message import EmailMessage
    from email.utils import make_msgid

    mail = EmailMessage()
    mail["Subject"] = " ".join(f"rivermark: {cause} is {'over' if over else 'open'}".split())
    mail["From"], mail["To"] = _of(parts, "from")[0], ", ".join(_of(parts, "to"))
    mail["Message-ID"] = make_msgid("rivermark")
    mail.set_content(message)
    host, is_secure = parts.hostname or "", parts.scheme == "smtps"
    kind, port = (smtplib.SMTP_SSL, 465) if is_secure else (smtplib.SMTP, 587)
    try:
        with kind(host, parts.port or port, timeout=SECONDS) as server:
            server.ehlo()
            if not is_secure and server.has_extn("starttls"):
                server.starttls(context=ssl.create_default_context())
                is_secure = True
            if parts.username:
                if not is_secure and host not in LOOPBACK:
                    raise NotDelivered(f"{host} offers no TLS: the password is not sent; use smtps")
                server.login(unquote(parts.username), unquote(parts.password or ""))
            server.send_message(mail)
    except (OSError, smtplib.SMTPException) as error:
        raise NotDelivered(f"mail by {host}: {str(error) or type(error).__name__}") from None


def _parts(address: str) -> SplitResult:
    try:
        parts = urlsplit(address)
        usable = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable or parts.scheme not in (*CHATS, *MAIL):
        raise RivermarkError(f"an address in {VARIABLE} is none of {EXAMPLES}")
    return parts


def _of(parts: SplitResult, name: str) -> list[str]:
    return parse_qs(parts.query).get(name, [])


def main(arguments: Sequence[str]) -> int:
    """Deliver to the address of that number; returns the exit code."""
    number, cause, message = arguments
    address = json.loads(os.environ[VARIABLE])[int(number)]
    try:
        deliver(address, cause, message, over=os.environ.get("RIVERMARK_NOTICE") == "over")
    except RivermarkError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
