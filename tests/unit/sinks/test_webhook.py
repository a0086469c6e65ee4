"""A sink to a web service: every row is delivered or set aside, whatever the service does."""

from __future__ import annotations

import json
import random
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread

import pytest
from deltalake import DeltaTable

from rivermark import DeclarationError, RivermarkError
from rivermark.connect import http
from rivermark.connect.http import pause_before, retry_after
from rivermark.lake.lake import Lake
from rivermark.model.sink import SinkContext
from rivermark.sinks import WebhookSink
from rivermark.sinks.undelivered import undelivered_of
from tests.kills import Killer
from tests.sink_contract import NewTarget, SinkContract, Target
from tests.unit.sinks.conftest import FARES, context, fares, of_json, two_days
from tests.web_service import Reply, Request, serving


@pytest.fixture
def where(tmp_path: Path) -> SinkContext:
    return context(Lake(str(tmp_path)))


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were made, none of which takes time."""
    made: list[float] = []
    monkeypatch.setattr("rivermark.sinks.webhook.time.sleep", made.append)
    return made


def undelivered(where: SinkContext) -> list[dict[str, object]]:
    path = Lake(where.root).path(undelivered_of(FARES))
    rows: list[dict[str, object]] = DeltaTable(path).to_pyarrow_table().to_pylist()
    return rows


def ok(_: Request) -> Reply:
    return 204, b""


def rides(requests: list[Request]) -> Counter[int]:
    return Counter(json.loads(r.body)["ride"] for r in requests)


# A process that is killed closes nothing.
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
class TestContract(SinkContract):
    """A receiver that drops what comes again by its key."""

    @pytest.fixture
    def new_target(
        self, new_context: Callable[[], SinkContext], killer: Killer
    ) -> Iterator[NewTarget]:
        killer.before("rivermark.connect.http.HttpClient.request")
        received: dict[str, bytes] = {}

        def take(request: Request) -> Reply:
            received.setdefault(request.headers["Idempotency-Key"], request.body)
            return 204, b""

        def make() -> Target:
            received.clear()
            sink = WebhookSink(url=service.url)
            return Target(sink, new_context(), lambda: of_json(received.values()))

        with serving(take) as service:
            yield make


def test_each_row_is_posted_with_the_same_key_when_its_batch_comes_again(
    where: SinkContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_TOKEN", "Bearer hunter2")
    with serving(ok) as service:
        sink = WebhookSink(
            url=f"{service.url}/alerts?a=b", headers={"Authorization": "$HOOK_TOKEN"}
        )
        for _ in range(2):
            writer = sink.open(where)
            assert writer.write(two_days(), where.origin.batch(0)) == 2
            writer.close()
        twice = fares((1, 1.0), (1, 1.0))
        with closing(sink.open(where)) as writer:
            writer.write(twice, where.origin.batch(1))
        with closing(replace(sink, rows_at_once=2).open(where)) as writer:
            writer.write(two_days(), where.origin.batch(2))
    sent = service.requests
    assert {(r.method, r.path) for r in sent} == {("POST", "/alerts?a=b")}
    assert {r.headers["Authorization"] for r in sent} == {"Bearer hunter2"}
    assert json.loads(sent[0].body) == {
        "ride": 1,
        "at": "2024-03-01T12:00:00Z",
        "fare": 1.0,
        "gone": False,
    }
    keys = [r.headers["Idempotency-Key"] for r in sent]
    assert keys[:2] == keys[2:4]
    assert len({*keys[:2], *keys[4:]}) == 5
    assert [row["ride"] for row in json.loads(sent[-1].body)] == [1, 2]
    assert service.connections == 4
    assert "hunter2" not in repr(sink) + sink.described()
    assert undelivered(where) == []


def test_a_service_that_fails_at_random_gets_every_row(
    where: SinkContext, pauses: list[float]
) -> None:
    rng = random.Random(17)
    delivered: Counter[int] = Counter()

    def moody(request: Request) -> Reply:
        mood = rng.random()
        if mood < 0.1:
            raise ConnectionError
        if mood < 0.4:
            return rng.choice([429, 500, 503]), b"", {}
        delivered[json.loads(request.body)["ride"]] += 1
        # It may have taken what it does not answer.
        if mood < 0.45:
            raise ConnectionError
        return 200, {}

    with serving(moody) as service:
        writer = WebhookSink(url=service.url, attempts=12).open(where)
        writer.write(fares(*((n, 1.0) for n in range(200))), where.origin.batch(0))
        writer.close()
    assert set(delivered) == set(range(200))
    assert undelivered(where) == []
    assert pauses
    assert max(pauses) <= http.LONGEST_PAUSE


@pytest.mark.parametrize(("final", "reasons"), [(b"204 Gone", []), (b"400 No", ["answered 400"])])
def test_hints_before_an_answer_are_no_answer(
    where: SinkContext, final: bytes, reasons: list[str]
) -> None:
    hints = b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            client, _ = server.accept()
            with client:
                while not client.recv(65536).endswith(b"}"):
                    pass
                client.sendall(hints + b"HTTP/1.1 " + final + b"\r\nContent-Length: 0\r\n\r\n")

        answering = Thread(target=answer)
        answering.start()
        writer = WebhookSink(url=f"http://127.0.0.1:{server.getsockname()[1]}").open(where)
        writer.write(fares((1, 1.0)), where.origin.batch(0))
        writer.close()
        answering.join()
    assert [row["reason"] for row in undelivered(where)] == reasons


def test_a_row_that_is_refused_is_set_aside_and_the_others_are_delivered(
    where: SinkContext, pauses: list[float]
) -> None:
    def strict(request: Request) -> Reply:
        ride = json.loads(request.body)["ride"]
        moved = {"Location": "http://127.0.0.2/"}
        replies: dict[int, Reply] = {2: (422, b""), 3: (302, b"", moved)}
        return replies.get(ride, (200, b""))

    with serving(strict) as service:
        for _ in range(2):
            writer = WebhookSink(url=service.url).open(where)
            writer.write(fares((1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0)), where.origin.batch(0))
            writer.close()
    assert rides(service.requests) == {1: 2, 2: 2, 3: 2, 4: 2}
    aside = undelivered(where)
    assert [(r["reason"], r["attempts"]) for r in aside] == [
        ("answered 422", 1),
        ("answered 302", 1),
    ]
    assert json.loads(str(aside[0]["body"]))["ride"] == 2
    assert aside[0]["idempotency_key"] == service.requests[1].headers["Idempotency-Key"]
    assert pauses == []


def test_a_service_that_is_down_or_hangs_holds_up_one_request_of_a_batch(
    where: SinkContext, pauses: list[float]
) -> None:
    hang = Event()

    def hangs(_: Request) -> Reply:
        hang.wait(20)
        return 200, b""

    with serving(hangs) as service:
        sink = WebhookSink(url=service.url, attempts=2, timeout=timedelta(milliseconds=100))
        writer = sink.open(where)
        writer.write(fares((1, 1.0), (2, 2.0), (3, 3.0)), where.origin.batch(0))
        writer.close()
        hang.set()
        writer = replace(sink, timeout=timedelta(seconds=60)).open(where)
        writer.write(fares((4, 4.0)), where.origin.batch(1))
        writer.close()
    # The batch after it was delivered, and then those that waited.
    assert undelivered(where) == []
    assert len(pauses) == 1


def test_r11_a_service_that_hangs_costs_a_batch_one_time_out_and_not_one_a_row(
    where: SinkContext, pauses: list[float]
) -> None:
    hang, is_well = Event(), [False]

    def hangs(_: Request) -> Reply:
        if not is_well[0]:
            hang.wait(20)
        return 200, b""

    with serving(hangs) as service:
        sink = WebhookSink(url=service.url, attempts=2, timeout=timedelta(milliseconds=200))
        with closing(sink.open(where)) as writer:
            began = time.monotonic()
            writer.write(fares(*((n, 1.0) for n in range(40))), where.origin.batch(0))
            writer.write(fares((40, 1.0), (41, 1.0)), where.origin.batch(1))
            assert time.monotonic() - began < 3
            assert len(service.requests) == 3
            aside = undelivered(where)
            assert {r["reason"] for r in aside} == {"no answer within 0.2 seconds"}
            assert Counter(r["attempts"] for r in aside) == {2: 1, 1: 1, 0: 40}
            assert sorted(json.loads(str(r["body"]))["ride"] for r in aside) == [*range(42)]
            assert {r["target"] for r in aside} == {sink.target}
            is_well[0] = True
            hang.set()
            writer.write(fares((42, 1.0)), where.origin.batch(2))
    assert undelivered(where) == []
    assert {*rides(service.requests)} == {*range(43)}


def test_m032_two_services_of_one_output_keep_what_each_did_not_take(where: SinkContext) -> None:
    with serving(lambda _: (400, b"")) as one, serving(lambda _: (422, b"")) as other:
        for service in (one, other):
            with closing(WebhookSink(url=service.url).open(where)) as writer:
                writer.write(fares((1, 1.0)), where.origin.batch(0))
            # A final answer is not asked for again by itself.
            with closing(WebhookSink(url=service.url).open(where)) as writer:
                writer.write(fares(), where.origin.batch(1))
            assert len(service.requests) == 1
    assert sorted(str(r["reason"]) for r in undelivered(where)) == ["answered 400", "answered 422"]


def test_what_retry_after_says_is_waited_for(where: SinkContext, pauses: list[float]) -> None:
    replies: list[Reply] = [
        *((429, b"", {"Retry-After": "7"}), (503, b"", {"Retry-After": "86400"})),
        (200, b""),
    ]
    with serving(lambda _: replies.pop(0)) as service:
        writer = WebhookSink(url=service.url).open(where)
        writer.write(fares((1, 1.0)), where.origin.batch(0))
        writer.close()
    assert pauses == [7.0, http.LONGEST_PAUSE]
    in_a_minute = f"{datetime.now(UTC) + timedelta(minutes=1):%a, %d %b %Y %H:%M:%S GMT}"
    assert 50 < (retry_after(in_a_minute) or 0) <= 60
    assert retry_after("soon") is retry_after(None) is None
    assert all(0.25 <= pause_before(2) <= 0.5 and pause_before(20) <= 60 for _ in range(50))


def test_secrets_and_urls_in_a_declaration_are_refused() -> None:
    with pytest.raises(DeclarationError, match="the header X-Api-Key holds a secret") as raised:
        WebhookSink(url="https://hooks.example/", headers={"X-Api-Key": "hunter2"})
    assert "hunter2" not in str(raised.value)
    with pytest.raises(DeclarationError, match="a URL with a password does not") as raised:
        WebhookSink(url="https://ops:hunter2@hooks.example/")
    for url in ("hooks.example", "ftp://hooks.example", "http://", "http://[::1"):
        with pytest.raises(DeclarationError, match="must begin with http"):
            WebhookSink(url=url)
    with pytest.raises(DeclarationError, match="must be above 0"):
        WebhookSink(url="https://hooks.example/", attempts=0)
    shown = WebhookSink(url="https://hooks.example/alerts?token=hunter2").described()
    assert shown.startswith("webhook https://hooks.example/alerts: at least once, with a key")


def test_a_url_of_the_environment_that_is_not_set_or_is_none_is_named(
    where: SinkContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RivermarkError, match=r"webhook setting 'url' .* HOOK, which is not set"):
        WebhookSink(url="$HOOK").open(where)
    monkeypatch.setenv("HOOK", "hooks.example/hunter2")
    with pytest.raises(DeclarationError, match=r"webhook \$HOOK: the URL must begin") as raised:
        WebhookSink(url="$HOOK").open(where)
    assert "hunter2" not in str(raised.value)
