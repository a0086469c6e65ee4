"""Conditions in SQL: what they say of rows, and what is refused when they are declared."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from multiprocessing import get_context
from typing import Any, Final

import pyarrow as pa
import pytest

from rivermark.model.errors import DeclarationError
from rivermark.quality.conditions import ConditionFailed, Conditions

INSTANT: Final = pa.timestamp("us", "UTC")
SCHEMA: Final = pa.schema(
    [
        ("fare", pa.decimal128(12, 2)),
        ("Pickup", INSTANT),
        ("dropoff", INSTANT),
        ("color", pa.string()),
        ("zones", pa.list_(pa.int32())),
        ("n", pa.int64()),
        ("d", pa.float64()),
        ("place", pa.struct([("lon", pa.float64())])),
    ]
)
TEXT: Final = pa.schema([("text", pa.string())])


def rows(**columns: list[Any]) -> pa.Table:
    """Rows of these columns; the others have no value."""
    [count] = {len(values) for values in columns.values()}
    return pa.table(
        [pa.array(columns.get(f.name, [None] * count), f.type) for f in SCHEMA], schema=SCHEMA
    )


def holds(text: str, **columns: list[Any]) -> list[bool]:
    masks = Conditions({"r": text}, SCHEMA).masks(rows(**columns))
    return [bool(each) for each in masks["r"].to_pylist()]


def read(text: str, kind: pa.DataType, *texts: str | None) -> list[Any]:
    readers = Conditions({"f": text}, TEXT, {"f": kind}, "reader of field")
    return list(readers.values(pa.table({"text": pa.array(texts, pa.string())}))["f"].to_pylist())


def refused(text: str) -> str:
    with pytest.raises(DeclarationError) as error:
        Conditions({"r": text}, SCHEMA)
    return str(error.value)


def test_a_condition_that_is_unknown_does_not_hold() -> None:
    assert holds("fare < 0", fare=[Decimal("-0.01"), Decimal(0), None]) == [True, False, False]


def test_decimals_are_compared_exactly() -> None:
    most, less = Decimal("9999999999.99"), Decimal("9999999999.98")
    assert holds("fare < 9999999999.99", fare=[most, less]) == [False, True]


def test_times_are_compared_to_the_microsecond_in_utc() -> None:
    start = datetime(2024, 3, 10, 7, tzinfo=UTC)
    two_hours = [start.replace(hour=9), start.replace(hour=9, microsecond=1)]
    assert holds(
        "dropoff - pickup > INTERVAL 2 HOURS", Pickup=[start, start], dropoff=two_hours
    ) == [False, True]
    assert holds("pickup = TIMESTAMPTZ '2024-03-10 07:00:00'", Pickup=[start]) == [True]


@pytest.mark.parametrize("text", ["n / 0 > 1", "n // 0 > 1", "n % 0 > 1", "d / 0 > 1"])
def test_a_division_by_zero_is_unknown(text: str) -> None:
    assert holds(text, n=[1], d=[1.0]) == [False]
    assert holds(f"({text}) IS NULL", n=[1], d=[1.0]) == [True]


def test_columns_of_other_shapes() -> None:
    assert holds(
        "len(list_filter(zones, lambda zone: zone > 263)) > 0", zones=[[1, 264], [1], None]
    ) == [True, False, False]
    assert holds("place.lon > 180", place=[{"lon": 181.0}, None]) == [True, False]


def test_a_condition_without_columns_and_a_batch_without_rows() -> None:
    assert holds("1 < 2", n=[1, 2]) == [True, True]
    assert holds("n < 2", n=[]) == []
    assert Conditions({}, SCHEMA).masks(rows(n=[1])).num_columns == 0


def test_only_the_columns_that_are_used_are_read() -> None:
    assert Conditions({"a": "N > 1", "b": "PICKUP < dropoff"}, SCHEMA).columns == (
        "Pickup",
        "dropoff",
        "n",
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("fair < 0", "there is no column 'fair' (at character 1); did you mean 'fare'?"),
        ("n > 1 AND\nfair < 0", "there is no column 'fair' (at character 11); did you"),
        ("'ü' = color AND fair < 0", "no column 'fair' (at character 17)"),
        ("zzz < 0", "there is no column 'zzz' (at character 1); there are fare, Pickup, dropoff"),
        ("fare <", 'syntax error at or near ")" (at its end)'),
        ("", "it is empty"),
        ("fare < 0 ORDER BY 1", 'syntax error at or near "ORDER" (at character 10)'),
        ("true; DROP TABLE rows", 'syntax error at or near ";"'),
        ("true) FROM rows WHERE (true", "it is not one expression"),
        ("true), (true", "it is not one expression"),
        ("fare", "it is no condition: it is DECIMAL(12,2), and must be true or false"),
        ("(SELECT 1) = 1", "a condition has no subquery"),
        ("n IN (SELECT n FROM rows)", "a condition has no subquery"),
        ("sum(n) > 1", "'sum' looks at several rows, a condition at one"),
        ("count(*) > 1", "looks at several rows"),
        ("row_number() OVER () = 1", "a condition has no window function"),
        ("unnest(zones) > 1", "looks at several rows"),
        ("random() > 0.5", "'random' does not say the same of a row each time"),
        ("pickup > now()", "'now' does not say the same"),
        ("pickup > current_timestamp", "'current_timestamp' does not say the same"),
        ("age(pickup) > INTERVAL 1 DAY", "'age' does not say the same"),
        ("nextval('s') > 1", "'nextval' does not say the same"),
        ("getenv('HOME') = 'x'", "'getenv' does not say the same"),
        ("read_text('/etc/passwd') IS NULL", "table function"),
        ("nofunction(n)", "there is no function 'nofunction' (at character 1)"),
        ("regexp_matches(color, '(')", "missing )"),
        ("timezone('Nowhere/x', pickup) > DATE '2020-01-01'", "Unknown TimeZone 'Nowhere/x'"),
        ("timezone(color, pickup) > DATE '2020-01-01'", "a time zone is a text in quotes"),
        ("pickup > INTERVAL 2 HOURS", "Cannot compare values of type TIMESTAMP WITH TIME ZONE"),
        ("color = 1", "the text 'x' was tried: write TRY(...) around what may fail"),
        ("* = 1", ""),
        ("n > $1", "a condition has no parameter: write the value"),
        ("n > ?", ""),
    ],
)
def test_what_cannot_be_evaluated_is_refused_by_name_and_place(text: str, reason: str) -> None:
    said = refused(text)
    assert said.startswith("rule 'r': ")
    assert reason in said
    assert "\n" not in said.replace(text, "")


def test_a_text_is_read_as_a_number_where_that_may_fail() -> None:
    assert holds("TRY_CAST(color AS INT) > 1", color=["2", "x", None]) == [True, False, False]


def test_a_column_named_by_a_word_of_sql_is_written_in_quotes() -> None:
    schema = pa.schema([("at", INSTANT), ("order", pa.int32())])
    for text, word in (("at IS NULL", "at"), ("order > 1", "order")):
        with pytest.raises(DeclarationError, match=f'as a column it is written "{word}"'):
            Conditions({"r": text}, schema)
    assert Conditions({"r": '"order" > 1 AND "at" IS NULL'}, schema).columns == ("at", "order")


def test_an_overflow_names_the_rule_and_no_value() -> None:
    with pytest.raises(ConditionFailed, match=r"rule 'wide' cannot be computed of a row") as error:
        Conditions({"ok": "n > 0", "wide": "n + n > 0"}, SCHEMA).masks(rows(n=[2**62]))
    assert str(2**62) not in str(error.value)
    assert holds("TRY(n + n) > 0", n=[2**62, 1]) == [False, True]


@pytest.mark.parametrize(
    ("text", "kind", "texts", "values"),
    [
        ("text::INT", pa.int32(), ["1", "x", None, "99999999999"], [1, None, None, None]),
        ("1 / text::INT", pa.float64(), ["0", "2", "x"], [None, 0.5, None]),
        (
            "text::DECIMAL(38,0) * text::DECIMAL(38,0)",
            pa.decimal128(38, 0),
            ["3", "9" * 30],
            [Decimal(9), None],
        ),
        ("text", pa.decimal128(4, 2), ["12.5", "123.4"], [Decimal("12.50"), None]),
        ("text", pa.date32(), ["2024-02-29", "2024-02-30"], [date(2024, 2, 29), None]),
        (
            "text",
            INSTANT,
            ["2024-01-01T00:00:00+05:30", "infinity", "10000-01-01", "0001-01-01 BC", "x"],
            [datetime(2023, 12, 31, 18, 30, tzinfo=UTC), None, None, None, None],
        ),
        (
            "make_timestamptz(text::BIGINT)",
            INSTANT,
            ["1", str(2**63 - 1), str(-(2**63))],
            [datetime(1970, 1, 1, microsecond=1, tzinfo=UTC), None, None],
        ),
        ("regexp_extract(text, text)", pa.string(), ["a", "("], ["a", None]),
        ("chr(text::INT)", pa.string(), ["65", "-1", "55296"], ["A", None, None]),
        ("text::JSON ->> 'a'", pa.string(), ['{"a":1}', "{"], ["1", None]),
    ],
)
def test_a_value_that_cannot_be_made_is_missing_in_its_row_alone(
    text: str, kind: pa.DataType, texts: list[str | None], values: list[Any]
) -> None:
    assert read(text, kind, *texts) == values


@pytest.mark.parametrize(
    ("text", "kind", "reason"),
    [
        ("txt::INT", pa.int32(), "there is no column 'txt'"),
        ("regexp_replace(text, '(', '')", pa.string(), "missing )"),
        ("timezone('Nowhere/x', text::TIMESTAMP)", INSTANT, "Unknown TimeZone 'Nowhere/x'"),
        (
            "CASE WHEN len(text) > 1 THEN make_timestamptz(2020, 1, 1, 0, 0, 0, text) END",
            INSTANT,
            "a time zone is a text in quotes",
        ),
        ("[text]", pa.int32(), "Unimplemented type for cast"),
    ],
)
def test_a_reader_that_can_never_work_is_refused(text: str, kind: pa.DataType, reason: str) -> None:
    with pytest.raises(DeclarationError) as error:
        Conditions({"f": text}, TEXT, {"f": kind}, "reader of field")
    assert str(error.value).startswith("reader of field 'f': ")
    assert reason in str(error.value)


def test_conditions_see_no_files_and_change_no_setting() -> None:
    from rivermark.quality.condition_engine import connection

    for sql in ("SELECT * FROM read_text('/etc/hostname')", "SET TimeZone = 'Asia/Tokyo'"):
        with pytest.raises(Exception, match=r"disabled|locked"):
            connection().execute(sql)


def test_they_are_evaluated_in_other_threads_and_processes() -> None:
    conditions = Conditions({"big": "n > 1"}, SCHEMA)
    batch = rows(n=[1, 2])
    with ThreadPoolExecutor(4) as pool:
        masks = list(pool.map(lambda _: conditions.masks(batch)["big"].to_pylist(), range(20)))
    assert masks == [[False, True]] * 20
    with get_context("fork").Pool(1) as workers:
        # Its arguments are pickled, as those of Spark's tasks are.
        [mask] = workers.map(_of_batch, [(conditions, batch)])
    assert mask == [False, True]


def _of_batch(sent: tuple[Conditions, pa.Table]) -> list[bool]:
    conditions, batch = sent
    return [bool(each) for each in conditions.masks(batch)["big"].to_pylist()]


def test_rows_in_several_batches_keep_their_order() -> None:
    # IN over many values is a join to DuckDB, which hands on small batches after large ones.
    texts = {"many": f"n IN {tuple(range(0, 300, 4))}", "small": "n < 5", "x": "contains(s, '1')"}
    numbers = pa.array(range(300), pa.int64())
    rows = pa.table({"n": numbers, "s": numbers.cast(pa.string())})
    parts = pa.concat_tables([rows.slice(0, 7), rows.slice(7, 100), rows.slice(107)])
    assert parts["n"].num_chunks == 3

    masks = Conditions(texts, rows.schema).masks(parts)
    assert masks["many"].to_pylist() == [n % 4 == 0 for n in range(300)]
    assert masks["small"].to_pylist() == [n < 5 for n in range(300)]
    values = Conditions(
        {"v": f"CASE WHEN {texts['many']} THEN n END"}, rows.schema, {"v": pa.int64()}
    )
    assert values.values(parts)["v"].to_pylist() == [n if n % 4 == 0 else None for n in range(300)]


def test_a_text_that_all_rows_share_means_the_same_as_a_column() -> None:
    schema = pa.schema([("file", pa.string()), ("n", pa.int64())])
    texts = {"named": "regexp_matches(file, '[0-9]{4}')", "both": "file = 'it''s 2024' AND n > 1"}
    conditions = Conditions(texts, schema)
    shared = pa.table({"file": ["it's 2024"] * 3, "n": [1, 2, None]}, schema=schema)
    mixed = pa.table({"file": ["it's 2024", "x", None], "n": [2, 2, 2]}, schema=schema)

    assert conditions.masks(shared).to_pydict() == {
        "named": [True, True, True],
        "both": [False, True, False],
    }
    assert conditions.masks(mixed).to_pydict() == {
        "named": [True, False, False],
        "both": [True, False, False],
    }


@pytest.mark.parametrize(
    "chunks",
    [
        [["green", "green"], ["green"]],
        [["green"], ["yellow", "green"]],
        [["green", None], ["green"]],
        [[None], [None]],
        [["", ""]],
    ],
)
def test_texts_of_a_dictionary_are_judged_as_plain_ones(chunks: list[list[str | None]]) -> None:
    """Be they all the same, of several dictionaries, or missing."""
    conditions = Conditions(
        {"is_green": "color = 'green'", "none": "color IS NULL", "long": "length(color) > 5"},
        pa.schema([("color", pa.string())]),
    )
    plain = pa.chunked_array([pa.array(chunk, pa.string()) for chunk in chunks])
    coded = pa.chunked_array([chunk.dictionary_encode() for chunk in plain.chunks])

    found = conditions.masks(pa.table({"color": coded}))

    assert found.equals(conditions.masks(pa.table({"color": plain})))
    texts = [text for chunk in chunks for text in chunk]
    assert found["is_green"].to_pylist() == [text == "green" for text in texts]
