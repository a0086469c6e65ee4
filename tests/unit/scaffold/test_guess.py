"""What is guessed of a sample's columns, and where a text stays a text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from rivermark.model.contract import RESERVED, Contract, Field
from rivermark.model.errors import WrongUse
from rivermark.scaffold.guess import field_names, guess_contract, guess_field
from rivermark.scaffold.sample import SampleColumn, read_sample


def guessed(name: str, *texts: str | None, quoted: bool = False) -> tuple[str, str]:
    guess = guess_field(SampleColumn(name, [*texts], quoted), name)
    return guess.type, guess.read


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (("plz", "01067", "80331"), "string"),
        (("n", "0", "12", "-3"), "long"),
        (("account", "12345678901234567890"), "string"),
        (("price", "9", "10.5"), "decimal(12,2)"),
        (("fare", "0.125"), "decimal(12,3)"),
        (("total", "12345678901.50"), "decimal(15,2)"),
        (("level", "9.95", "0.10"), "decimal(12,2)"),
        (("latitude", "51.0504", "48.1"), "double"),
        (("strength", "1e5", "2.5"), "double"),
        (("paid", "true", "FALSE"), "boolean"),
        (("flag", "0", "1"), "long"),
        (("at", "2026-03-02T08:00:00Z"), "timestamp"),
        (("at", "2026-03-02 08:00", "tomorrow"), "string"),
        (("seen_at", "1767225600000"), "timestamp"),
        (("count", "1767225600000"), "long"),
        (("day", "2026-03-02"), "timestamp"),
        (("when", "31.12.2026 10:00"), "timestamp"),
        (("when", "13/02/2026 10:00", "1/2/2026 9:00"), "timestamp"),
        (("when", "1/2/2026 10:00"), "string"),
        (("size", "NA", "3"), "long"),
        (("name", "NA", "Anna"), "string"),
        (("nothing", None), "string"),
    ],
)
def test_a_text_is_typed_by_what_admission_reads(column: tuple[str, ...], expected: str) -> None:
    assert guessed(*column)[0] == expected


def test_what_a_source_writes_as_a_text_stays_one_unless_it_is_a_time_or_money() -> None:
    assert guessed("n", "12", quoted=True)[0] == "string"
    assert guessed("level", "9.95", quoted=True)[0] == "string"
    assert guessed("price", "9.95", quoted=True)[0] == "decimal(12,2)"
    assert guessed("at", "2026-03-02T08:00:00Z", quoted=True)[0] == "timestamp"
    assert guessed("ok", "true", quoted=True)[0] == "string"


def test_readers_are_named_where_a_type_alone_does_not_read() -> None:
    assert guessed("price", "1,50")[1] == "readers.decimal(12, 2, decimal_comma=True)"
    assert guessed("ts", "1767225600000")[1] == "readers.epoch_millis()"
    assert (
        'readers.local_timestamp("UTC", "dd.MM.yyyy HH:mm")' in guessed("t", "31.12.2026 10:00")[1]
    )


def test_what_was_guessed_is_said() -> None:
    def note(name: str, *texts: str | None) -> str:
        return guess_field(SampleColumn(name, [*texts]), name).note

    assert "leading zeros" in note("plz", "01067")
    assert "taken as UTC" in note("at", "2026-03-02 08:00")
    assert note("n", "1", None) == "1 of 2 are empty"
    assert "d/M/yyyy H:mm or M/d/yyyy H:mm" in note("when", "1/2/2026 10:00")


def test_names_are_those_that_columns_can_have() -> None:
    names = [
        *field_names(["order id", "_id", "flags", "payload", "2nd", "ID", "id", "", "a.b", "ä"])
    ]

    assert names[:4] == ["order_id", "id", "source_flags", "source_payload"]
    assert len({name.lower() for name in names}) == len(names)
    for name in names:
        assert name.lower() not in RESERVED
        Contract(fields=(Field(name, "string"),))


def csv(folder: Path, text: str) -> Path:
    file = folder / "sample.csv"
    file.write_text(text)
    return file


def test_keys_times_and_lateness(tmp_path: Path) -> None:
    text = "updated_at,order_id,customer_id,ordered_at\n"
    for n, (minute, customer) in enumerate([(30, 1), (5, 2), (31, 1)]):
        text += f"2026-03-02T09:00:00Z,{n},{customer},2026-03-02T08:{minute:02}:00Z\n"
    guess = guess_contract(read_sample(str(csv(tmp_path, text)), "cafe/orders"))

    assert guess.event_time == "ordered_at"
    assert guess.other_times == ("updated_at",)
    assert guess.keys == ("order_id",)
    assert guess.first == datetime(2026, 3, 2, 8, 5, tzinfo=UTC)
    assert guess.lateness == timedelta(minutes=25)


def test_a_key_may_be_one_with_the_time(tmp_path: Path) -> None:
    text = "sensor_id,at,n\n1,2026-03-02T08:00:00Z,5\n1,2026-03-02T08:01:00Z,5\n"
    guess = guess_contract(read_sample(str(csv(tmp_path, text)), "a/b"))

    assert guess.keys == ("sensor_id", "at")


def test_a_typed_source_keeps_its_types_but_for_money_and_names(tmp_path: Path) -> None:
    at = datetime(2026, 3, 2, 8, tzinfo=UTC)
    columns = {
        "order_id": pa.array(["0001", "0002"]),
        "at": pa.array([at, at]),
        "day": pa.array([at.date(), at.date()]),
        "fare": pa.array([1.5, 2.25]),
        "weight": pa.array([1 / 3, 2.0]),
        "net": pa.array([Decimal("1.50"), Decimal("20.00")]),
        "small": pa.array([1, None], pa.int8()),
        "paid": pa.array([True, False]),
        "lines": pa.array([[1], [2, 3]]),
    }
    pq.write_table(pa.table(columns), tmp_path / "orders.parquet")
    write_deltalake(tmp_path / "orders", pa.table(columns))
    expected = {
        "order_id": "string",
        "at": "timestamp",
        "day": "timestamp",
        "fare": "decimal(12,2)",
        "weight": "double",
        "net": "decimal(4,2)",
        "small": "long",
        "paid": "boolean",
        "lines": "string",
    }

    for place in ("orders.parquet", "orders"):
        sample = read_sample(str(tmp_path / place), "cafe/orders")
        guess = guess_contract(sample)
        assert {field.name: field.type for field in guess.fields} == expected
        assert [f.name for f in guess.fields if not f.required] == ["small"]
        assert guess.keys == ("order_id",)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("none.csv", None, "is not there"),
        ("empty.csv", "", "has no rows"),
        ("head.csv", "a,b\n", "has no rows"),
        ("list.json", '[{"a": 1}]', "no object"),
        ("cut.jsonl", '{"a": 1', "line 1"),
        ("book.xlsx", "PK", "no format that is read here"),
    ],
)
def test_a_sample_that_tells_nothing_is_refused(
    tmp_path: Path, name: str, content: str | None, told: str
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)

    with pytest.raises(WrongUse, match=told):
        read_sample(str(tmp_path / name), "a/b")
