"""Rows that are looked up in outside services: the step that an executor runs, without Spark."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from traceback import format_exception
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructField, StructType

from rivermark.model.errors import DeclarationError, RivermarkError, TableSchemaMismatch
from rivermark.operators import (
    HttpLookup,
    Lookup,
    LookupFailed,
    PostgresLookup,
    ServiceUnavailable,
)
from rivermark.operators.enrichment.enrich import ERROR, STATUS, Enrichment, enrich
from rivermark.operators.enrichment.lookup import Key, LookupClient
from rivermark.operators.enrichment.pool import Cache, Outcome, Terms
from rivermark.runtime.supervision.error_classes import Fault, explain
from rivermark.testing import wait_until
from setup.postgres_server import PostgresServer
from tests.web_service import Reply, Request, serving

TERMS = Terms(
    on=("ad_id",),
    in_flight=8,
    timeout=timedelta(seconds=60),
    attempts=3,
    cache_for=timedelta(0),
    cache_rows=0,
)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rivermark.operators.enrichment.pool.time.sleep", lambda _: None)


def step(lookup: Lookup, terms: Terms = TERMS, **options: Any) -> Enrichment:
    added = [StructField(f.name, f.dataType) for f in lookup.schema.fields]
    added += [StructField(STATUS, StringType()), StructField(ERROR, StringType())]
    made = Enrichment(lookup, terms, ordered=True, fails=False, added=tuple(added))
    return replace(made, **options)


def clicks(*ads: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"ad_id": [*ads], "click": [*range(len(ads))]})


def enriched(made: Enrichment, *batches: pa.RecordBatch) -> list[dict[str, Any]]:
    return pa.Table.from_batches(made(iter(batches))).to_pylist()  # type: ignore[no-any-return]


def campaigns(url: str, **options: Any) -> HttpLookup:
    return HttpLookup(url=f"{url}/ads/{{ad_id}}", columns="campaign string", **options)


def ad_of(request: Request) -> str:
    return request.path.rpartition("/")[2]


def test_values_of_every_type_are_read_and_what_is_missing_is_said() -> None:
    def reply(request: Request) -> Reply:
        if ad_of(request) == "7":
            return 404, {"error": "unknown"}
        assert request.headers["X-Token"] == "hunter2"
        return 200, {
            "name": "ä",
            "budget": "12.30",
            "active": True,
            "since": "2024-03-01T12:00:00Z",
            "clicks": 2**40,
            "rate": 0.5,
        }

    columns = (
        "name string, budget decimal(8,2), active boolean, since timestamp, clicks long, "
        "rate double, note string"
    )
    with pytest.MonkeyPatch.context() as patch, serving(reply) as service:
        patch.setenv("AD_TOKEN", "hunter2")
        url = f"{service.url}/v1/{{ad_id}}"
        lookup = HttpLookup(url=url, columns=columns, headers={"X-Token": "$AD_TOKEN"})
        rows = enriched(step(lookup), clicks("a/b ?", "7", None, "a/b ?"))
    assert rows[0] == rows[3] | {"click": 0}
    assert rows[0] == {
        "ad_id": "a/b ?",
        "click": 0,
        "name": "ä",
        "budget": Decimal("12.30"),
        "active": True,
        "since": datetime(2024, 3, 1, 12, tzinfo=UTC),
        "clicks": 2**40,
        "rate": 0.5,
        "note": None,
        STATUS: "found",
        ERROR: None,
    }
    assert [row[STATUS] for row in rows] == ["found", "absent", "absent", "found"]
    assert [request.path for request in service.requests].count("/v1/a%2Fb%20%3F") == 1
    assert len(service.requests) == 2
    assert "hunter2" not in repr(lookup) + lookup.name


def test_requests_are_made_together_up_to_the_limit_over_connections_that_stay() -> None:
    together = threading.Barrier(8)

    def reply(request: Request) -> Reply:
        together.wait(60)  # Goes on only when eight requests are there at a time.
        return 200, {"campaign": ad_of(request)}

    with serving(reply) as service:
        made = step(campaigns(service.url))
        for first in (0, 64):
            ads = [str(first + n) for n in range(64)]
            rows = enriched(made, clicks(*ads[:40]), clicks(*ads[40:]))
            assert [row["campaign"] for row in rows] == ads
        # Another copy of the step, as a later batch's task has it.
        enriched(replace(made), clicks(*"abcdefgh"))
        assert service.most_at_once == 8
        assert service.connections == 8
        assert len(service.requests) == 136


def test_rows_keep_their_order_unless_those_known_first_may_leave_first() -> None:
    gate = threading.Event()

    def reply(request: Request) -> Reply:
        if ad_of(request) == "1":
            gate.wait(60)
        return 200, {"campaign": ad_of(request)}

    with serving(reply) as service:
        made = step(campaigns(service.url), ordered=False)
        leaving = made(iter([clicks("1", "2", "1", "3", "4")]))
        left: list[str] = []
        while len(left) < 3:
            left += next(leaving)["ad_id"].to_pylist()
        assert sorted(left) == ["2", "3", "4"]
        gate.set()
        assert next(leaving)["click"].to_pylist() == [0, 2]
        assert next(leaving, None) is None
        rows = enriched(step(campaigns(service.url)), clicks("1", "2", "1", "3", "4"))
        assert [row["click"] for row in rows] == [0, 1, 2, 3, 4]


def test_outcomes_are_kept_for_their_time_within_their_bound_and_failures_are_not() -> None:
    def reply(request: Request) -> Reply:
        return {"1": (200, {"campaign": "x"}), "2": (404, {})}.get(ad_of(request), (400, {}))

    with serving(reply) as service:
        terms = replace(TERMS, cache_for=timedelta(hours=1), cache_rows=10)
        made = step(campaigns(service.url), terms)
        for _ in range(3):
            rows = enriched(made, clicks("1", "2", "3"))
            assert [row[STATUS] for row in rows] == ["found", "absent", "failed"]
        assert Counter(map(ad_of, service.requests)) == {"1": 1, "2": 1, "3": 3}
    cache = Cache(timedelta(hours=1), 2)
    for key in ("a", "b"):
        cache.put((key,), Outcome("absent"))
    assert cache.get(("a",))
    cache.put(("c",), Outcome("absent"))
    assert [bool(cache.get((key,))) for key in "abc"] == [True, False, True]
    assert not Cache(timedelta(0), 2).get(("a",))
    brief = Cache(timedelta(microseconds=1), 2)
    brief.put(("a",), Outcome("absent"))
    wait_until(lambda: brief.get(("a",)) is None, reason="its life is over")


def test_a_request_is_made_again_where_that_may_help_and_its_failure_is_said() -> None:
    made: Counter[str] = Counter()

    def reply(request: Request) -> Reply:
        ad = ad_of(request)
        made[ad] += 1
        if ad == "cut" and made[ad] < 3:
            raise ConnectionError
        if ad == "busy" and made[ad] < 3:
            return 503, {}
        if ad == "gone":
            return 500, {}
        if ad == "moved":
            return 302, {}
        campaign: Any = {} if ad == "odd" else "x"
        return 200, {"campaign": campaign}

    with serving(reply) as service:
        rows = enriched(step(campaigns(service.url)), clicks("cut", "busy", "gone", "moved", "odd"))
        by_ad = {row["ad_id"]: (row[STATUS], row[ERROR]) for row in rows}
        assert by_ad["cut"] == by_ad["busy"] == ("found", None)
        assert by_ad["gone"] == ("failed", "replied 500")
        assert by_ad["moved"] == ("failed", "replied 302")
        assert "its reply does not fit: Expected `str | null`" in by_ad["odd"][1]
        assert (made["gone"], made["moved"], made["odd"]) == (3, 1, 1)
        failing = step(campaigns(service.url), fails=True)
        for ad, reply_of, restartable in (("moved", "302", False), ("gone", "500", True)):
            text = rf"/ads/.*looked up for ad_id='{ad}': replied {reply_of}"
            with pytest.raises(LookupFailed, match=text) as raised:
                enriched(failing, clicks("cut", ad))
            # As a Python worker of Spark reports it.
            fault = explain(RuntimeError("".join(format_exception(raised.value))))
            assert fault == Fault(str(raised.value), restartable)


def test_refusals_are_no_reason_to_give_up_the_other_rows() -> None:
    def reply(request: Request) -> Reply:
        return (200, {"campaign": "x"}) if ad_of(request) == "good" else (400, {})

    with serving(reply) as service:
        ads = [*(f"bad{n}" for n in range(50)), "good"]
        rows = enriched(step(campaigns(service.url), replace(TERMS, in_flight=1)), clicks(*ads))
    assert Counter((row[STATUS], row[ERROR]) for row in rows) == {
        ("failed", "replied 400"): 50,
        ("found", None): 1,
    }


def test_a_value_that_does_not_fit_its_column_fails_its_row_alone() -> None:
    def reply(request: Request) -> Reply:
        values: dict[str, Any] = {"wide": "123456.78", "long": 2**40, "fine": "99999999999.9"}
        return 200, {("clicks" if ad_of(request) == "long" else "bid"): values[ad_of(request)]}

    with serving(reply) as service:
        lookup = HttpLookup(url=f"{service.url}/{{ad_id}}", columns="bid decimal(12,1), clicks int")
        rows = enriched(step(lookup), clicks("wide", "long", "fine"))
    assert [(row[STATUS], row[ERROR]) for row in rows] == [
        ("failed", "its value of 'bid' does not fit decimal128(12, 1)"),
        ("failed", "its value of 'clicks' does not fit int32"),
        ("found", None),
    ]


def test_a_reply_that_is_no_json_fails_its_row_alone() -> None:
    nested = b"[" * 5_000 + b"]" * 5_000
    replies = {
        "text": b"<html>",
        "bytes": b'{"campaign": "\xff"}',
        "half": b'{"campaign": "\\ud800"}',
        "deep": b'{"campaign": "x", "more": ' + nested + b"}",
        "list": b"[]",
        "none": b"",
        "fine": b'{"campaign": "x"}',
    }
    with serving(lambda request: (200, replies[ad_of(request)])) as service:
        rows = enriched(step(campaigns(service.url)), clicks(*replies))
    assert [row[STATUS] for row in rows] == ["failed"] * 6 + ["found"]
    assert all(row[ERROR].startswith("its reply does not fit: ") for row in rows[:-1])


def test_a_key_leads_to_no_other_path_of_the_service() -> None:
    with serving(lambda _: (200, {"campaign": "x"})) as service:
        keys = ["..", ".", "", "../admin", "a?b=c#d", "x\r\nHost: other"]
        rows = enriched(step(campaigns(service.url)), clicks(*keys))
        assert [row[STATUS] for row in rows] == ["failed"] * 3 + ["found"] * 3
        assert rows[0][ERROR] == "ad_id='..' cannot be part of a URL"
        assert sorted(request.path for request in service.requests) == [
            "/ads/..%2Fadmin",
            "/ads/a%3Fb%3Dc%23d",
            "/ads/x%0D%0AHost%3A%20other",
        ]


@pytest.mark.parametrize("token", ["hunter2\n", "hunter2\u2026"])
def test_a_secret_that_no_header_can_hold_is_refused_without_it(
    monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setenv("AD_TOKEN", token)
    lookup = campaigns("http://127.0.0.1:1", headers={"Authorization": "$AD_TOKEN"})
    with pytest.raises(RivermarkError, match="lookup header Authorization has a line b") as raised:
        enriched(step(lookup), clicks("1"))
    assert "hunter2" not in str(raised.value)


def test_a_service_that_hangs_is_given_up_and_no_row_is_lost() -> None:
    hang = threading.Event()

    def reply(request: Request) -> Reply:
        if ad_of(request) != "quick":
            hang.wait(60)
        return 200, {"campaign": "x"}

    with serving(reply) as service:
        terms = replace(TERMS, in_flight=2, timeout=timedelta(milliseconds=200), attempts=2)
        made = step(campaigns(service.url), terms)
        ads = [f"slow{n}" for n in range(50)]
        rows = enriched(made, clicks(*ads))
        hang.set()
        assert [row["ad_id"] for row in rows] == ads
        reasons = Counter((row[STATUS], row[ERROR]) for row in rows)
        assert reasons.pop(("timed out", "no reply within 0.2 seconds")) < 10
        [((status, reason), count)] = reasons.items()
        assert (status, count > 40) == ("failed", True)
        assert reason.startswith("not looked up: ")
        assert len(service.requests) < 20


class Waiting(LookupClient):
    """Refuses `bad` while `slow` is under way, never answers that, and the others two at a time."""

    under_way = threading.Event()
    two = threading.Barrier(2)

    def __init__(self) -> None:
        self._aborted = threading.Event()

    def get(self, keys: Sequence[Key]) -> Mapping[Key, Sequence[Any]]:
        [(ad,)] = keys
        if ad == "bad":
            self.under_way.wait(60)
            raise LookupFailed("no", passes=False)
        if ad == "slow":
            self.under_way.set()
            self._aborted.wait(60)
            raise LookupFailed("aborted", passes=True)
        self.two.wait(30)
        return {key: ["x"] for key in keys}

    def abort(self) -> None:
        self._aborted.set()

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class WaitingService(Lookup):
    name = "waiting"
    schema = StructType([StructField("campaign", StringType())])

    def open(self, on: Sequence[str], timeout: timedelta) -> LookupClient:
        return Waiting()


def test_a_batch_that_fails_leaves_no_request_under_way() -> None:
    terms = replace(TERMS, in_flight=2, timeout=timedelta(hours=1))
    made = step(WaitingService(), terms, fails=True)
    with pytest.raises(LookupFailed, match="looked up for ad_id='bad': no"):
        enriched(made, clicks("slow", "bad"))
    # Both threads of the worker are free for the next batch.
    assert [row["campaign"] for row in enriched(made, clicks("1", "2"))] == ["x", "x"]


def test_a_request_that_is_ended_is_not_sent_again_by_itself() -> None:
    def reply(_: Request) -> Reply:
        if len(service.requests) == 2:
            client.abort()
        return 200, {"campaign": "x"}

    with serving(reply) as service:
        client = campaigns(service.url).open(("ad_id",), timedelta(seconds=60))
        assert client.get([("1",)]) == {("1",): ["x"]}
        with pytest.raises(LookupFailed):
            client.get([("2",)])
        assert [ad_of(request) for request in service.requests] == ["1", "2"]
        # One that had its reply when it was to be ended leaves a connection that is of no use.
        client.get([("3",)])
        client.abort()
        assert client.get([("4",)]) == {("4",): ["x"]}
        client.close()


@pytest.fixture
def ads(postgres: PostgresServer) -> PostgresLookup:
    import psycopg

    with psycopg.connect(postgres.database, autocommit=True) as connection:
        connection.execute(
            "DROP SCHEMA IF EXISTS ads CASCADE; CREATE SCHEMA ads; "
            'CREATE TABLE ads."the ads" AS SELECT n::text AS ad_id, '
            "'c' || n % 10 AS campaign, n::numeric(10,2) / 4 AS budget, "
            "timestamptz '2024-03-01 12:00Z' + n * interval '1 hour' AS since "
            "FROM generate_series(1, 1000) n"
        )
    return PostgresLookup(
        table="ads.the ads",
        columns="campaign string, budget decimal(10,2), since timestamp",
        database="$TEST_DATABASE",
        keys_at_once=100,
    )


def backends() -> list[int]:
    import psycopg

    with psycopg.connect(os.environ["TEST_DATABASE"]) as connection:
        sql = "SELECT pid FROM pg_stat_activity WHERE application_name = 'rivermark lookup'"
        return [pid for (pid,) in connection.execute(sql)]


def test_rows_of_postgres_are_looked_up_many_a_query_over_connections_that_stay(
    ads: PostgresLookup, postgres: PostgresServer
) -> None:
    others = {*backends()}
    made = step(ads, replace(TERMS, in_flight=3))
    for _ in range(3):
        rows = enriched(made, clicks(*map(str, range(990, 1010)), "'; DROP", None))
        rows += enriched(made, clicks(*map(str, range(1, 900))))
    assert rows[0] == {
        "ad_id": "990",
        "click": 0,
        "campaign": "c0",
        "budget": Decimal("247.50"),
        "since": datetime(2024, 4, 11, 18, tzinfo=UTC),
        STATUS: "found",
        ERROR: None,
    }
    assert Counter(row[STATUS] for row in rows) == {"found": 11 + 899, "absent": 9 + 2}
    before = {*backends()} - others
    assert 1 <= len(before) <= 3
    postgres.stop()
    postgres.start()
    assert {row[STATUS] for row in enriched(made, clicks("1", "2"))} == {"found"}
    assert not {*backends()} & before


def test_a_postgres_that_hangs_is_a_time_out(ads: PostgresLookup, postgres: PostgresServer) -> None:
    others = {*backends()}
    terms = replace(TERMS, in_flight=1, timeout=timedelta(seconds=1), attempts=1)
    made = step(ads, terms)
    assert enriched(made, clicks("1"))[0][STATUS] == "found"
    [backend] = [psutil.Process(pid) for pid in {*backends()} - others]
    backend.suspend()
    try:
        [row] = enriched(made, clicks("1"))
    finally:
        backend.resume()
    assert (row[STATUS], row[ERROR]) == ("timed out", "no reply within 1 seconds")
    assert enriched(made, clicks("1"))[0][STATUS] == "found"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"columns": "price double"}, "it has no column 'price'$"),
        (
            {"columns": "campaign long, budget double, since date"},
            "column 'campaign' is text there, and bigint is declared; column 'budget' is "
            "numeric there, and double is declared; column 'since' is timestamp with time",
        ),
        ({"columns": "since string"}, "column 'since' is timestamp with .* and string is declared"),
        ({"table": "ads.gone"}, "it does not exist$"),
    ],
)
def test_a_table_that_is_not_as_declared_ends_the_batch_with_both_types(
    ads: PostgresLookup, changes: dict[str, Any], problem: str
) -> None:
    made = step(replace(ads, **changes))
    with pytest.raises(
        TableSchemaMismatch, match=f"TEST_DATABASE cannot be .* in: {problem}"
    ) as it:
        enriched(made, clicks("1"))
    assert not explain(RuntimeError("".join(format_exception(it.value)))).restartable


def test_keys_of_another_type_or_form_are_refused_and_do_not_count_as_absent(
    ads: PostgresLookup, postgres: PostgresServer
) -> None:
    import psycopg

    with psycopg.connect(postgres.database, autocommit=True) as connection:
        connection.execute("CREATE TABLE ads.numbered AS SELECT 5::bigint AS ad_id, 'c' AS name")
    by_number = replace(ads, table="ads.numbered", columns="name string")
    with pytest.raises(
        RivermarkError, match=r"for a key \(ad_id\) it has \(5,\), which is of anoth"
    ):
        enriched(step(by_number), clicks("5"))
    [row] = enriched(step(by_number), clicks(5))
    assert (row[STATUS], row["name"]) == ("found", "c")
    with pytest.raises(RivermarkError, match="cannot be looked up in: operator does not exist"):
        enriched(step(ads), clicks(5))


def test_one_key_that_cannot_be_looked_up_fails_none_of_those_beside_it(
    ads: PostgresLookup, postgres: PostgresServer
) -> None:
    import psycopg

    with psycopg.connect(postgres.database, autocommit=True) as connection:
        connection.execute(
            """
            UPDATE ads."the ads" SET since = 'infinity' WHERE ad_id = '2';
            UPDATE ads."the ads" SET since = '0044-03-15 BC' WHERE ad_id = '3';
            UPDATE ads."the ads" SET budget = 'NaN' WHERE ad_id = '4';
            INSERT INTO ads."the ads" SELECT * FROM ads."the ads" WHERE ad_id = '5'
            """
        )
    rows = enriched(step(ads), clicks(*map(str, range(1, 60)), "a\0b"))
    failed = {row["ad_id"]: row[ERROR] for row in rows if row[STATUS] != "found"}
    assert {ad: reason.partition(":")[0] for ad, reason in failed.items()} == {
        "2": "timestamp too large (after year 10K)",
        "3": "timestamp too small (before year 1)",
        "4": "its value of 'budget' does not fit decimal128(10, 2)",
        "5": "it has several rows of a key",
        "a\0b": "PostgreSQL text fields cannot contain NUL (0x00) bytes",
    }
    assert Counter(row[STATUS] for row in rows) == {"found": 55, "failed": 5}


def test_a_server_without_connections_passes_and_a_wrong_password_does_not(
    ads: PostgresLookup, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    monkeypatch.setenv("AD_PASSWORD", "hunter2")
    with psycopg.connect(postgres.database, autocommit=True) as connection:
        connection.execute(
            "DROP ROLE IF EXISTS visitor; CREATE ROLE visitor LOGIN CONNECTION LIMIT 0 "
            "PASSWORD 'hunter2'"
        )
        visitor = replace(ads, settings={"user": "visitor", "password": "$AD_PASSWORD"})
        made = step(visitor, replace(TERMS, attempts=2), fails=True)
        with pytest.raises(ServiceUnavailable, match='too many connections for role "visitor"'):
            enriched(made, clicks("1"))
        monkeypatch.setenv("AD_PASSWORD", "hunter3")
        made = step(visitor, replace(TERMS, attempts=1), fails=True)
        with pytest.raises(LookupFailed, match="password authentication failed") as raised:
            enriched(made, clicks("1"))
        connection.execute("DROP ROLE visitor")
    assert not raised.value.passes
    assert "hunter" not in str(raised.value)


def test_a_url_that_names_another_column_ends_the_batch_instead_of_finding_nothing() -> None:
    with (
        serving(lambda _: (404, {})) as service,
        pytest.raises(DeclarationError, match=r"names \{ad\}, which is not .* by: ad_id"),
    ):
        enriched(step(HttpLookup(url=f"{service.url}/{{ad}}", columns="a string")), clicks("1"))
    assert service.requests == []


@pytest.mark.parametrize(
    ("on", "lookup", "options", "fault"),
    [
        ((), {}, {}, "`on` names no column"),
        (("ad",), {}, {}, "the rows have no column 'ad'"),
        (("ad_id",), {"columns": "note string"}, {}, "the rows have a column 'note' already"),
        (("ad_id",), {"keys_at_once": 0}, {}, ".*`keys_at_once` must be above 0"),
        (("ad_id",), {}, {"attempts": 0}, ".*`attempts`, .* must be above 0"),
        (("ad_id",), {}, {"timeout": timedelta(0)}, ".*`timeout` and .* must be above 0"),
    ],
)
def test_what_an_enrichment_cannot_do_is_said_with_its_lookup(
    on: tuple[str, ...], lookup: dict[str, Any], options: dict[str, Any], fault: str
) -> None:
    rows = cast(DataFrame, SimpleNamespace(columns=["ad_id", "note"]))
    made = PostgresLookup(**{"table": "ads", "columns": "campaign string", **lookup})
    with pytest.raises(DeclarationError, match=f"^enrich with table ads of PostgreSQL: {fault}"):
        enrich(rows, made, on, **options)


def test_declarations_that_cannot_work_are_refused() -> None:
    with pytest.raises(DeclarationError, match="the header Authorization holds a secret"):
        HttpLookup(url="http://h/{a}", columns="a string", headers={"Authorization": "hunter2"})
    with pytest.raises(DeclarationError, match="column 'tags' of type array<string> cannot be"):
        HttpLookup(url="http://h/{a}", columns="tags array<string>")
    with pytest.raises(DeclarationError, match="must begin with http"):
        HttpLookup(url="h/{a}", columns="a string")
    with pytest.raises(DeclarationError, match="a password does not belong"):
        PostgresLookup(table="ads", columns="a string", database="postgresql://u:p@h/d")
