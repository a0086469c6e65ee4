"""What each reader makes of a text: cases N019 to N025, and texts at random against an oracle."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import FloatType, IntegerType, LongType

from rivermark import DeclarationError, Field, readers
from rivermark.ingest.parse.column_values import ColumnValues
from rivermark.model.reader import ValueReader

NEW_YORK = "America/New_York"


def read(texts: Sequence[str | None], **by_name: ValueReader) -> list[dict[str, Any]]:
    """The value of each text by each reader, one by one and of all texts together."""
    columns = {}
    for name, reader in by_name.items():
        one_by_one = [None if text is None else reader.value(text) for text in texts]
        values = ColumnValues(reader)
        column = values.read(pa.array(texts, pa.string()))
        assert column.equals(pa.array(one_by_one, values.type)), name
        columns[name] = column.to_pylist()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


NUMBERS = {
    "whole": readers.integer(),
    "int": readers.integer(IntegerType()),
    "exact": readers.decimal(38, 9),
    "money": readers.decimal(12, 2),
    "double": readers.number(),
    "float": readers.number(FloatType()),
    "comma_whole": readers.integer(decimal_comma=True),
    "comma_exact": readers.decimal(8, 2, decimal_comma=True),
    "comma_double": readers.number(decimal_comma=True),
}
NO_NUMBERS = [
    "", " ", "20.5F", "20.5f", "20.5d", "20.5D", "5L", "0x1p3", "0x10", "1_000", "1 000", "1e",
    "e5", ".", "+", "-", "--1", "+-1", "1.2.3", "1e1.5", "1e1000", "1e-2000000000", "NaN", "nan",
    "Infinity", "-inf", "１２", "١٢", "1\u00a0000", "\u00a01", "1\u2009", "−1", "½", "12%", "$1",
    "1€", "(1)", "true", "0\x01", "\x0b1", "1\x17", "1\t", "\t1", "1\n", "1\r", "1\x00",
    "\ufeff1", "1" * 401, "1,5,0", "1.000,5", "1,000.5", "1'000",
]  # fmt: skip


SEVENS = ["7", " 7 ", "+7", "007", "7.0", "7.", "7e0", "0.7e1", "70E-1", ".7e+1", "7." + "0" * 90]
COMMAS = ["1.021", "1.000", "1.020,5", "1,020.5", ".5", "1,021", "1,000", "-0,5", ",5", "5,"]
WHOLE = {
    "2.0000000000": 2, "2.0e3": 2000, "1.234567890123E12": 1234567890123, "20e-1": 2,
    "9223372036854775807": 2**63 - 1, "-9223372036854775808": -(2**63), "0e-300": 0, "0.0E0": 0,
    "9223372036854775807.000": 2**63 - 1, "-0": 0,
}  # fmt: skip
BROKEN = [
    "2.0000000001", "1.9999999999999999999999999", "2." + "0" * 60 + "1", "25e-1", "1e-30",
    "1e-20", "9223372036854775808", "1e19", "-9999999999999999999.5",
    "-99999999999999999999999999999.5", "1e300", "1e-300", "0.5", "20000000001e-10",
    "12345678901234567891e-1",
]  # fmt: skip
WIDE = ["1e39", "-1e308", "1e309", "3000000000", "1e400"]


@pytest.fixture(scope="module")
def numbers() -> dict[str, dict[str, Any]]:
    """What each reader of numbers makes of each text."""
    texts = [*NO_NUMBERS, *SEVENS, *COMMAS, *WHOLE, *BROKEN, *WIDE]
    return dict(zip(texts, read(texts, **NUMBERS), strict=True))


def test_n019_n021_what_is_no_number_is_none_for_any_type(
    numbers: dict[str, dict[str, Any]],
) -> None:
    for text in NO_NUMBERS:
        assert set(numbers[text].values()) == {None}, text


def test_n021_numbers_are_the_same_ones_for_all_types(numbers: dict[str, dict[str, Any]]) -> None:
    seven = dict.fromkeys(NUMBERS, 7)
    for text in SEVENS:
        point = "." in text
        expected = {k: None if point and k.startswith("comma") else v for k, v in seven.items()}
        assert numbers[text] == expected, text


def test_n022_beside_decimal_commas_a_point_is_ambiguous(
    numbers: dict[str, dict[str, Any]],
) -> None:
    comma = [name for name in NUMBERS if name.startswith("comma")]
    values = [tuple(numbers[text][name] for name in comma) for text in COMMAS]

    assert values[:5] == [(None, None, None)] * 5
    assert values[5:] == [
        (None, Decimal("1.02"), 1.021),
        (1, Decimal(1), 1.0),
        (None, Decimal("-0.50"), -0.5),
        (None, Decimal("0.50"), 0.5),
        (5, Decimal(5), 5.0),
    ]


def test_whole_numbers_are_not_rounded_to_be_whole(numbers: dict[str, dict[str, Any]]) -> None:
    read_as = {text: numbers[text]["whole"] for text in (*WHOLE, *BROKEN)}

    assert read_as == WHOLE | dict.fromkeys(BROKEN)


def test_what_a_type_cannot_hold_is_not_read(numbers: dict[str, dict[str, Any]]) -> None:
    rows = [numbers[text] for text in WIDE]

    assert [row["double"] for row in rows] == [1e39, -1e308, None, 3e9, None]
    assert [row["float"] for row in rows] == [None, None, None, 3e9, None]
    assert [row["int"] for row in rows] == [None] * 5
    assert [row["money"] for row in rows] == [None, None, None, Decimal(3000000000), None]


def test_numbers_at_random_are_read_as_python_reads_them() -> None:
    random = Random(13)
    texts = [
        "".join(random.choices("0123456789.eE+- ,", k=random.randint(1, 9))) for _ in range(4000)
    ]
    texts += [f"{random.uniform(-1e6, 1e6):.{random.randint(0, 12)}f}" for _ in range(1000)]
    texts += [repr(random.uniform(-1, 1) * 10 ** random.randint(-30, 30)) for _ in range(1000)]
    chosen = {k: NUMBERS[k] for k in ("whole", "money", "double")}

    for text, row in zip(texts, read(texts, **chosen), strict=True):
        plain = text.strip(" ")
        known = re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", plain)
        if not known:
            assert set(row.values()) == {None}, text
            continue
        exact = Decimal(plain)
        if not exact and exact.adjusted() > 30:
            continue  # A decimal of 280 digits to the engine, all of them zero.
        assert row["double"] == (float(plain) if abs(float(plain)) < float("inf") else None), text
        is_long = abs(exact) < 2**63 and exact == int(exact)
        assert row["whole"] == (int(exact) if is_long else None), text
        cents = exact.quantize(Decimal("0.01"), ROUND_HALF_UP) if abs(exact) < 10**11 else exact
        assert row["money"] == (cents if abs(cents) < 10**10 else None), text


TIMES = {
    "utc": readers.utc_timestamp(),
    "local": readers.local_timestamp(NEW_YORK),
    "formats": readers.local_timestamp(NEW_YORK, "yyyy-MM-dd HH:mm:ss", "M/d/yy H:mm"),
}


@pytest.fixture(scope="module")
def instants() -> Any:
    def by_reader(*texts: str) -> dict[str, list[datetime | None]]:
        rows = read(texts, **TIMES)
        return {name: [row[name] for row in rows] for name in TIMES}

    return by_reader


def june(hour: int, minute: int = 0) -> datetime:
    return datetime(2025, 6, 1, hour, minute, tzinfo=UTC)


ZONES = {
    "Z": june(10), " Z": june(10), "z": june(10), " z": june(10), " UTC": june(10),
    "UTC": june(10), " GMT": june(10),
    " UT": june(10), "-04:00": june(14), "-4:00": june(14), "+5:30": june(4, 30),
    "+05:30": june(4, 30), "+0530": june(4, 30), "-0400": june(14), "-04": june(14),
    "-4": june(14), " -04:00": june(14), " UTC-4": june(14), " UTC+05:30": june(4, 30),
    " GMT+5:30": june(4, 30), "GMT-4": june(14), " EST": june(15), " MST": june(17),
    " America/New_York": june(14), " Europe/Berlin": june(8), " Etc/GMT+4": june(14),
    " Asia/Kolkata": june(4, 30),
}  # fmt: skip
NO_ZONES = [
    "[Europe/Berlin]", "Z[UTC]", "+02:00[Europe/Berlin]", " CEST", " CET", " EDT", " PST", " BST",
    " CST", " IST", " am", " PM", " Mars/Olympus", " Berlin", "+530", "+19:00", "-04:0", "+", "-",
    " utc", "\n", "\x01", " x", "Zulu", "Z Z", "Z UTC", "−04:00", " (EST)", ",5", "+00:00:00:00",
]  # fmt: skip


def test_n025_a_text_with_a_zone_is_the_instant_it_names_or_unreadable(instants: Any) -> None:
    expected = {
        start + zone: instant
        for start in ("2025-06-01 10:00:00", "2025-06-01T10:00:00.000", "2025-06-01T10:00")
        for zone, instant in {**ZONES, **dict.fromkeys(NO_ZONES)}.items()
    }
    for times in instants(*expected).values():
        assert dict(zip(expected, times, strict=True)) == expected


def test_n025_a_text_without_a_zone_is_the_wall_time_of_its_source(instants: Any) -> None:
    found = instants(
        "2025-06-01 10:00:00", " 2025-06-01T10:00 ", "2025-01-01 10:00:00", "6/1/25 10:00"
    )

    winter = [datetime(2025, 1, 1, hour, tzinfo=UTC) for hour in (10, 15)]
    assert found["utc"] == [june(10), june(10), winter[0], None]
    assert found["local"] == [june(14), june(14), winter[1], None]
    assert found["formats"] == [june(14), None, winter[1], june(14)]


def test_n025_a_format_with_a_zone_gives_instants() -> None:
    texts = ["01.06.2025 10:00 +02:00", "01.06.2025 10:00 UTC", "01.06.2025 10:00"]
    patterns = ("dd.MM.yyyy HH:mm XXX", "dd.MM.yyyy HH:mm 'UTC'", "dd.MM.yyyy HH:mm")
    rows = read(texts, at=readers.local_timestamp(NEW_YORK, *patterns))

    assert [row["at"] for row in rows] == [june(8), june(10), june(14)]
    with pytest.raises(DeclarationError, match="a zone in brackets may be missing"):
        readers.local_timestamp(NEW_YORK, "yyyy-MM-dd HH:mm[ XXX]")


NO_TIMES = [
    "2025-06-01", "2025-06-01 10", "2025-6-1 10:00", "2025-06-31 10:00", "2025-06-01 24:00",
    "2025-06-01 10:60", "2025-06-01  10:00", "now", "today", "epoch", "10:00", "",
    "20250601T100000Z", "２０２５-06-01 10:00", "-2025-06-01 10:00", "12025-06-01 10:00",
    "2025-06-01 10:00:00:00",
]  # fmt: skip


def test_what_is_no_time_is_not_read(instants: Any) -> None:
    for times in instants(*NO_TIMES).values():
        assert dict(zip(NO_TIMES, times, strict=True)) == dict.fromkeys(NO_TIMES)


def test_milliseconds_are_whole_numbers_within_the_years_of_the_calendar() -> None:
    moments = ["1163000400000", "1163000400000.0", "1.1630004E12"]
    others = ["1163000400000.5", "1" * 18, "1163000400", "0", "-1", "9" * 30, "x", None]
    rows = read([*moments, *others], at=readers.epoch_millis())

    moment = datetime(2006, 11, 8, 15, 40, tzinfo=UTC)
    assert [row["at"] for row in rows] == [moment] * 3 + [None] * len(others)


def test_kinds_have_the_readers_of_their_types() -> None:
    float_reader, long_reader = readers.reader_for(FloatType()), readers.reader_for(LongType())
    (row,) = read(["1e39"], float=float_reader, long=long_reader)
    assert row == {"float": None, "long": None}


def test_r24_the_largest_float_is_one_and_floats_are_rounded_once() -> None:
    single = readers.number(FloatType())
    wanted = {
        "3.4028235e38": 3.4028234663852886e38, "3.40282356e38": 3.4028234663852886e38,
        "3.4028236e38": None, "1e39": None, "-3.4028235e38": -3.4028234663852886e38,
        "1.0000000596046447754": 1.0000001192092896, "1.0000000596046447753": 1.0, "7e-46": 0.0,
        "1.0000000596046447753906250": 1.0, "0.1": 0.10000000149011612,
    }  # fmt: skip
    assert [row["at"] for row in read([*wanted] * 4, at=single)] == [*wanted.values()] * 4


def test_a_reader_in_sql_reads_what_it_returns_by_the_fields_type_or_another_reader() -> None:
    codes = "CASE lower(text) WHEN 'card' THEN 1 WHEN 'cash' THEN 2 WHEN 'huge' THEN 1e12 END"
    paid = Field("paid", "int", read=readers.sql(codes))
    texts = ["Card", "cash", "cheque", None, "huge", "card"]
    assert ColumnValues(paid.reader).read(pa.array(texts)).to_pylist() == [
        1,
        2,
        None,
        None,
        None,
        1,
    ]
    line = readers.sql(r"regexp_extract(text, 'id=(\d+)', 1)", then=readers.integer())
    values = ColumnValues(Field("id", "long", read=line).reader)
    assert values.read(pa.array(["a id=7 b", "id=x", "id=12"])).to_pylist() == [7, None, 12]


def test_m048_a_text_for_which_a_reader_in_sql_fails_is_unreadable() -> None:
    amount = Field("amount", "long", read=readers.sql("CAST(text AS BIGINT)"))
    values = ColumnValues(amount.reader).read(pa.array(["1", "two", "3"]))
    assert values.to_pylist() == [1, None, 3]


@pytest.mark.parametrize(
    ("field", "text"),
    [
        (lambda: Field("n", "double", read=readers.decimal(8, 2)).reader, "reads decimal(8,2)"),
        (lambda: Field("n", "date", read=readers.epoch_millis()).reader, "reads timestamp"),
        (lambda: readers.local_timestamp(NEW_YORK, "EEE d"), "'EEE' is not known"),
        (lambda: readers.local_timestamp(NEW_YORK, "Mdyy"), "M is of one or two digits"),
        (lambda: readers.local_timestamp(NEW_YORK, "dd.MM.yyyy dd"), "a part of a time twice"),
        (lambda: readers.local_timestamp(NEW_YORK, "yyyy#MM"), "# has a meaning of its own"),
        (lambda: readers.local_timestamp("PST"), "no time zone is called 'PST'"),
        (lambda: readers.integer(FloatType()), "no type of whole numbers"),
        (lambda: readers.sql(5), "`expression` is 5"),  # type: ignore[arg-type]
        (lambda: Field("n", "long", read=len), "expected a Reader"),  # type: ignore[arg-type]
    ],
)
def test_a_reader_that_cannot_be_is_refused(field: Callable[[], object], text: str) -> None:
    with pytest.raises(DeclarationError, match=re.escape(text)):
        field()


def test_patterns_of_datetimes_mean_what_they_mean_to_java() -> None:
    read_as = {
        ("M/d/yy H:mm", "6/1/25 9:05"): june(9, 5),
        ("M/d/yy H:mm", "6/31/25 9:05"): None,
        ("yyyyMMdd'T'HHmmss", "20250601t100000"): june(10),
        ("hh:mm a d-M-yyyy", "10:00 pm 1-6-2025"): june(22),
        ("hh:mm a d-M-yyyy", "12:00 AM 1-6-2025"): june(0),
        ("hh:mm a d-M-yyyy", "13:00 am 1-6-2025"): None,
        ("dd/MMM/yyyy:HH:mm:ss Z", "01/jun/2025:10:00:00 +0200"): june(8),
        ("yyyy-MM-dd HH:mm[:ss][.SSS]", "2025-06-01 10:00:00.5"): datetime(
            2025, 6, 1, 10, 0, 0, 500_000, UTC
        ),
        ("yyyy-MM-dd HH:mm[:ss][.SSS]", "2025-06-01 10:00"): june(10),
        ("yyyy-MM-dd", "2025-06-01"): june(0),
        ("dd.MM.yyyy HH:mm VV", "01.06.2025 12:00 Europe/Berlin"): june(10),
        ("dd.MM.yyyy HH:mm X", "01.06.2025 12:00 Z"): june(12),
        ("HH 'o''clock' dd.MM.yyyy", "10 o'clock 01.06.2025"): june(10),
    }
    for (pattern, text), moment in read_as.items():
        rows = read([text], at=readers.local_timestamp("UTC", pattern))
        assert rows == [{"at": moment}], (pattern, text)
