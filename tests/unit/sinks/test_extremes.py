"""The extremes of each type through sinks: each value comes back, or its row is told with why."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pytest
from deltalake import DeltaTable
from pyspark.sql.types import StructType

from rivermark import DeclarationError, Table
from rivermark.lake.arrow_types import arrow_schema
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.model.rows import as_rows
from rivermark.model.sink import SinkContext
from rivermark.sinks import DeltaAppend, FileSink, PostgresAppend, Sink, WebhookSink
from rivermark.sinks.undelivered import undelivered_of, waiting_in
from tests.unit.sinks.conftest import connected, context
from tests.web_service import serving

EVERY: Final = Table(
    name="test/extremes",
    schema="id long, byte byte, short short, int int, long long, float float, double double, "
    "money decimal(38,18), large decimal(38,0), flag boolean, text string, raw binary, day date, "
    "at timestamp",
    description="The extremes of each type.",
)
VALUES: Final[dict[str, list[Any]]] = {
    "byte": [-(2**7), 2**7 - 1, 0],
    "short": [-(2**15), 2**15 - 1, 0],
    "int": [-(2**31), 2**31 - 1, 0],
    "long": [-(2**63), 2**63 - 1, 2**53 + 1],
    "float": [math.nan, math.inf, -math.inf, -0.0, 1.401298464324817e-45, 3.4028234663852886e38],
    "double": [math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308],
    "money": [Decimal("9" * 20 + "." + "9" * 18), Decimal("-" + "9" * 20), Decimal("1E-18")],
    "large": [Decimal("9" * 38), Decimal("-" + "9" * 38), Decimal(0)],
    "flag": [True, False],
    "text": ["", "x" * 1_000_000, '"', ",", "\n", "\0", "\\N", "null", "NaN", "\U0001f600", "'"],
    "raw": [b"", b"\0", b"\xff\xfe", bytes(range(256)) * 400],
    "day": [date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), date(1582, 10, 10)],
    "at": [
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    ],
}


def rows() -> pa.Table:
    """A row of nulls, then one of each value beside nulls."""
    made: list[dict[str, Any]] = [{}]
    made += [{column: value} for column, values in VALUES.items() for value in values]
    numbered = [{"id": number, **row} for number, row in enumerate(made)]
    return pa.Table.from_pylist(numbered, arrow_schema(EVERY.schema))


def plain(table: pa.Table) -> list[str]:
    """The rows in the order of their numbers; NaN equals NaN, and zero is not minus zero."""
    return [repr(row) for row in sorted(table.to_pylist(), key=lambda row: row["id"])]


@pytest.fixture
def where(tmp_path: Path) -> SinkContext:
    return context(Lake(str(tmp_path)), EVERY)


def written(sink: Sink, where: SinkContext) -> None:
    writer = sink.open(where)
    writer.write(as_rows(rows()), where.origin.batch(0))
    writer.close()


def test_parquet_files_hold_every_extreme(where: SinkContext) -> None:
    written(FileSink(format="parquet"), where)
    (file,) = Path(where.root).glob("exports/**/*.parquet")
    assert plain(pa.dataset.dataset(file).to_table()) == plain(rows())


def test_a_table_of_the_lake_holds_every_extreme(where: SinkContext) -> None:
    create_table(Lake(where.root), EVERY)
    written(DeltaAppend(), where)
    table = DeltaTable(Lake(where.root).path(EVERY)).to_pyarrow_table()
    assert plain(table.cast(arrow_schema(EVERY.schema))) == plain(rows())


def test_lines_of_json_hold_every_extreme(where: SinkContext) -> None:
    written(FileSink(format="jsonl"), where)
    (file,) = Path(where.root).glob("exports/**/*.jsonl")
    check_objects(file.read_text().split("\n")[:-1])


def test_a_web_service_gets_every_extreme(where: SinkContext) -> None:
    with serving(lambda _: (204, b"")) as service:
        written(WebhookSink(url=f"{service.url}/rows"), where)
    check_objects([request.body for request in service.requests])
    assert not [*waiting_in(Lake(where.root), undelivered_of(where.table))]


def test_csv_files_hold_every_extreme_and_refuse_bytes_with_what_to_write(tmp_path: Path) -> None:
    with pytest.raises(DeclarationError, match=r"bytes of column 'raw'.*F\.base64\(\"raw\"\)"):
        FileSink(format="csv").check(EVERY)
    sent = rows().drop_columns(["raw"])
    table = Table(
        name=EVERY.name,
        schema=StructType([field for field in EVERY.schema.fields if field.name != "raw"]),
        description=EVERY.description,
    )
    FileSink(format="csv").check(table)
    where = context(Lake(str(tmp_path)), table)
    writer = FileSink(format="csv").open(where)
    writer.write(as_rows(sent), where.origin.batch(0))
    writer.close()
    (file,) = Path(where.root).glob("exports/**/*.csv")
    # A text is in quotes, so that an empty one is told from none; nan is a number.
    options = pyarrow.csv.ConvertOptions(
        column_types=sent.schema,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    within = pyarrow.csv.ParseOptions(newlines_in_values=True)
    whole = pyarrow.csv.ReadOptions(block_size=2**23)
    found = pyarrow.csv.read_csv(file, whole, within, options)
    assert plain(found) == plain(sent)


def check_objects(lines: Sequence[str | bytes]) -> None:
    """Raise AssertionError where objects of JSON are not the rows, in their order."""
    found = [json.loads(line, parse_float=Decimal) for line in lines]
    assert [row["id"] for row in found] == [*range(rows().num_rows)]
    for sent, row in zip(rows().to_pylist(), found, strict=True):
        assert {name: of_json(name, row[name]) for name in row} == {
            name: shown(value) for name, value in sent.items()
        }


def test_a_database_holds_every_extreme_or_says_of_each_row_why_not(
    where: SinkContext, new_schema: Callable[[], None]
) -> None:
    written(PostgresAppend(database="$TEST_DATABASE", table="extremes"), where)
    with connected() as connection:
        cursor = connection.execute("SELECT * FROM extremes ORDER BY id")
        names = [column.name for column in cursor.description or ()]
        held = {row[0]: dict(zip(names, row, strict=True)) for row in cursor}
    told = {
        json.loads(row["body"])["id"]
        for row in waiting_in(Lake(where.root), undelivered_of(where.table))
    }
    sent = {row["id"]: row for row in rows().to_pylist()}
    assert held.keys() | told == sent.keys()
    assert not held.keys() & told
    # A database's text holds no NUL; every other value comes back.
    assert [sent[number]["text"] for number in told] == ["\0"]
    for number, row in held.items():
        row["float"] = single(row["float"])
        assert {name: shown(row[name]) for name in sent[number]} == {
            name: shown(value) for name, value in sent[number].items()
        }


def shown(value: Any) -> str:
    """A value as text: amounts by their value, moments in UTC, all else to the bit."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if not isinstance(value, Decimal):
        return repr(value)
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def single(value: float | str | None) -> float | None:
    """A number of 32 bits, which is written with as few digits as tell it from the next one."""
    if value is None:
        return None
    number: float = pa.scalar(float(value), pa.float32()).as_py()
    return number


def of_json(name: str, value: Any) -> str:
    """The value that a text or a number of JSON stands for."""
    if value is None:
        return shown(None)
    kinds: dict[str, Callable[[Any], Any]] = {
        "float": single,
        "double": float,
        "money": Decimal,
        "large": Decimal,
        "raw": base64.b64decode,
        "day": date.fromisoformat,
        "at": datetime.fromisoformat,
    }
    return shown(kinds.get(name, lambda same: same)(value))
