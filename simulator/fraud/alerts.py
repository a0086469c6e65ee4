"""A receiver of alerts: the web service of somebody who looks at cards and accounts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from threading import Lock
from typing import Any

import msgspec

from simulator.local_service import Reply, Request, service


@dataclass
class AlertReceiver:
    """The alerts that arrived, in their order, each once; `heard` is called with each."""

    heard: Callable[[dict[str, Any]], None] | None = None
    alerts: list[dict[str, Any]] = field(default_factory=list)
    _keys: set[str] = field(default_factory=set)
    _lock: Lock = field(default_factory=Lock)

    def respond(self, request: Request) -> Reply:
        """Take a row, unless its key says that it came before."""
        if request.method != "POST":
            return Reply(HTTPStatus.METHOD_NOT_ALLOWED)
        alert: dict[str, Any] = msgspec.json.decode(request.body)
        with self._lock:
            key = request.headers.get("idempotency-key", "")
            if not key or key not in self._keys:
                self._keys.add(key)
                self.alerts.append(alert)
                if self.heard is not None:
                    self.heard(alert)
        return Reply()


@contextmanager
def receiving(receiver: AlertReceiver, port: int = 0) -> Iterator[str]:
    """Serve the receiver for as long as the block lasts; yields its URL."""
    with service(receiver.respond, port) as url:
        yield url


def in_words(alert: dict[str, Any]) -> str:
    """An alert as a person reads it."""
    if "card_id" in alert:
        many = f"{len(alert['payments'])} payments, {alert['amount']} USD"
        return f"{alert['event_time']} {alert['card_id']}: {alert['rule']}, {many}"
    many = f"after {len(alert['logins']) - 1} refused logins"
    return f"{alert['event_time']} {alert['account_id']}: let in from {alert['country']} {many}"
