"""Alerts that a webhook posts arrive, each once, and are told in words."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from assets.fraud.streams import alert_sinks, delivery_of
from rivermark.sinks import WebhookSink
from simulator.fraud.alerts import AlertReceiver, in_words, receiving
from simulator.fraud.demo import arrived

BROKEN_INTO: dict[str, Any] = {
    "account_id": "account_3",
    "event_time": "2026-03-02T12:14:40.468Z",
    "country": "US",
    "logins": [4, 5, 6, 7],
}
TRIED_OUT: dict[str, Any] = {
    "card_id": "card_7",
    "event_time": "2026-03-02T12:15:00.000Z",
    "rule": "small_then_large",
    "amount": "612.10",
    "payments": [8, 9],
}


def post(url: str, alert: dict[str, Any], key: str) -> int:
    connection = HTTPConnection(urlsplit(url).netloc)
    connection.request("POST", "/", json.dumps(alert), {"Idempotency-Key": key})
    status = connection.getresponse().status
    connection.close()
    return status


def test_an_alert_that_comes_again_counts_once() -> None:
    heard: list[dict[str, Any]] = []
    receiver = AlertReceiver(heard.append)
    with receiving(receiver) as url:
        assert [post(url, BROKEN_INTO, key) for key in ("a", "a", "b")] == [200, 200, 200]
        assert post(url, TRIED_OUT, "c") == 200

    assert receiver.alerts == heard == [BROKEN_INTO, BROKEN_INTO, TRIED_OUT]


def test_the_demo_tells_how_many_arrived_and_the_first_of_them() -> None:
    receiver = AlertReceiver(alerts=[TRIED_OUT] * 5)

    first, *others = arrived("http://127.0.0.1:8701", receiver)

    assert first == "alerts that arrived by webhook at http://127.0.0.1:8701: 5, the first"
    assert others == [f"  {in_words(TRIED_OUT)}"] * 3
    assert in_words(TRIED_OUT) == (
        "2026-03-02T12:15:00.000Z card_7: small_then_large, 2 payments, 612.10 USD"
    )
    assert in_words(BROKEN_INTO) == (
        "2026-03-02T12:14:40.468Z account_3: let in from US after 3 refused logins"
    )


def test_alerts_are_posted_where_the_environment_names_a_service() -> None:
    [sink] = alert_sinks("http://127.0.0.1:8701")

    assert isinstance(sink, WebhookSink)
    assert sink.url == "$FRAUD_ALERTS", "the address may be a secret"
    assert "posted" in delivery_of("http://127.0.0.1:8701")
    assert alert_sinks(None) == alert_sinks("") == ()
    assert "rivermark accounts --alerts 8701" in delivery_of(None), "what to start"
