"""A table's rows are looked for in the files that may hold some, and in no others."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import dataset as ds

from rivermark.lake import table_rows
from rivermark.lake.delta import dataset_of, read_rows
from rivermark.lake.sql import query
from rivermark.lake.table_rows import TableRows
from tests.large_tables import forge_files

START = datetime(2024, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def opened(rows: TableRows, condition: Any) -> list[str]:
    """The files that a filter leaves."""
    return [fragment.path for fragment in rows.get_fragments(condition)]


@pytest.fixture
def year(tmp_path: Path) -> TableRows:
    """A table of 5,000 files, each of its own minute."""
    return dataset_of(forge_files(tmp_path, 5_000, START, timedelta(minutes=1)))


def test_few_of_many_files_are_opened(year: TableRows) -> None:
    at = ds.field("at")
    hour = (at >= START + DAY) & (at < START + DAY + timedelta(hours=1))

    assert 60 <= len(opened(year, hour)) <= 62
    assert len(opened(year, ds.field("batch") == 4_711)) == 1
    assert len(opened(year, (ds.field("batch") >= 4_000) & hour)) == 0
    assert len(opened(year, at < START - DAY)) == 0
    assert len(opened(year, None)) == 5_000


def test_few_of_many_files_are_opened_by_sql(
    year: TableRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    own = TableRows._opened

    def counted(rows: TableRows, indexes: Any) -> Any:
        chosen = [*indexes]
        seen.append(len(chosen))
        return own(rows, chosen)

    monkeypatch.setattr(TableRows, "_opened", counted)
    query("SELECT count(*) FROM t WHERE batch > ?", {"t": year}, [4_990])
    query('SELECT count(*) FROM t WHERE "at" >= ?', {"t": year}, [START + 3 * DAY])
    assert seen[0] == 9
    assert 679 <= seen[1] <= 682


def test_rows_are_counted_by_the_log(year: TableRows) -> None:
    assert year.count_rows() == 5_000


@pytest.mark.usefixtures("reading")
@pytest.mark.parametrize("seed", range(3))
def test_no_range_of_files_hides_a_row(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranges of ranges of files with nulls, without values, and with bounds that are cut."""
    monkeypatch.setattr(table_rows, "RANGE", 3)
    dice = random.Random(seed)
    parts = []
    for n in range(13):
        moments = [
            None
            if dice.random() < 0.3
            else START + timedelta(microseconds=dice.randrange(-(10**9), 10**9))
            for _ in range(dice.choice([1, 2, 5]))
        ]
        numbers = [None if dice.random() < 0.2 else dice.randrange(50) for _ in moments]
        part = pa.table(
            {
                "id": pa.array([n * 10 + i for i in range(len(moments))], pa.int64()),
                "at": pa.array(moments, pa.timestamp("us", "UTC")),
                "n": pa.array(numbers, pa.int32()),
            }
        )
        parts.append(part)
        write_deltalake(tmp_path, part, mode="append")
    rows = dataset_of(DeltaTable(tmp_path))
    everything = pa.concat_tables(parts)
    at, n = ds.field("at"), ds.field("n")
    for _ in range(15):
        moment = dice.choice(everything["at"].drop_null().to_pylist())
        number = dice.randrange(50)
        for condition in (
            at == moment,
            (at > moment) & (n <= number),
            (at < moment) | (n == number),
            at.is_null() & (n > number),
            n.isin([number, number + 1]),
            ~(n >= number),
        ):
            found = read_rows(rows, columns=["id"], filter=condition)["id"].to_pylist()
            right = everything.filter(condition)["id"].to_pylist()
            assert sorted(found) == sorted(right), str(condition)


def test_a_road_past_the_scanner_fails_and_finds_not_nothing(year: TableRows) -> None:
    with pytest.raises(FileNotFoundError, match="by the methods of its dataset"):
        ds.Scanner.from_dataset(year).to_table()
    with pytest.raises(TypeError):
        year.filter(ds.field("batch") == 1)
    with pytest.raises(TypeError):
        year.replace_schema(year.schema)


@pytest.mark.usefixtures("reading")
def test_columns_that_older_files_lack_are_null(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    write_deltalake(
        tmp_path, pa.table({"id": [2], "more": ["a"]}), mode="append", schema_mode="merge"
    )
    rows = dataset_of(DeltaTable(tmp_path))

    assert read_rows(rows).sort_by("id").to_pylist() == [
        {"id": 1, "more": None},
        {"id": 2, "more": "a"},
    ]
    assert read_rows(rows, filter=ds.field("more").is_null())["id"].to_pylist() == [1]
    assert read_rows(rows, filter=ds.field("more") == "a")["id"].to_pylist() == [2]
    assert read_rows(dataset_of(DeltaTable(tmp_path, version=0)))["id"].to_pylist() == [1]


@pytest.mark.usefixtures("reading")
def test_values_of_partitions_are_read_from_the_log(tmp_path: Path) -> None:
    days = ["a b", "c%2F", None]
    write_deltalake(tmp_path, pa.table({"id": [1, 2, 3], "day": days}), partition_by=["day"])
    rows = dataset_of(DeltaTable(tmp_path))

    assert read_rows(rows).sort_by("id")["day"].to_pylist() == days
    assert read_rows(rows, filter=ds.field("day") == "c%2F")["id"].to_pylist() == [2]
    assert read_rows(rows, filter=ds.field("day").is_null())["id"].to_pylist() == [3]


@pytest.mark.usefixtures("reading")
def test_r06_a_date_beyond_the_year_9999_is_read(tmp_path: Path) -> None:
    """delta-rs's own dataset ends with "Invalid isoformat string"."""
    far = pa.array([3_673_000, -800_000, 0], pa.int32()).cast(pa.date32())
    for n in range(3):
        write_deltalake(tmp_path, pa.table({"id": [n], "day": far.slice(n, 1)}), mode="append")
    rows = dataset_of(DeltaTable(tmp_path))

    assert read_rows(rows).num_rows == 3
    newer = ds.field("day") > date(2024, 1, 1)
    assert read_rows(rows, filter=newer)["id"].to_pylist() == [0]
    assert query("SELECT id FROM t WHERE day < DATE '0001-01-01'", {"t": rows}) == [{"id": 1}]


def test_hours_are_counted_by_the_log_where_files_are_of_one(year: TableRows) -> None:
    counts, rest = year.by_hour("at", START + DAY, START + 2 * DAY)

    assert len(counts) == 24
    assert {*counts.values()} == {59}
    # Those of a full hour: their bounds may be cut by a millisecond.
    assert len(rest.files) == 25


@pytest.mark.parametrize("seed", range(3))
def test_rows_by_hour_are_those_of_the_rows(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    start, end = START + timedelta(hours=2), START + timedelta(hours=9)
    moments: list[datetime | None] = []
    for _ in range(12):
        first = START + timedelta(minutes=dice.randrange(12 * 60))
        part = [first + timedelta(minutes=dice.randrange(20)) for _ in range(3)]
        with_null = [*part, None] if dice.random() < 0.3 else part
        moments += with_null
        rows = pa.table({"at": pa.array(with_null, pa.timestamp("us", "UTC"))})
        write_deltalake(tmp_path, rows, mode="append")

    counts, rest = dataset_of(DeltaTable(tmp_path)).by_hour("at", start, end)
    for moment in rest.to_table()["at"].drop_null().to_pylist():
        if start <= moment < end:
            hour = moment.replace(minute=0, second=0, microsecond=0).astimezone(UTC)
            counts[hour] = counts.get(hour, 0) + 1

    right: dict[datetime, int] = {}
    for each in moments:
        if each is not None and start <= each < end:
            hour = each.replace(minute=0, second=0, microsecond=0)
            right[hour] = right.get(hour, 0) + 1
    assert counts == right


def test_the_newest_rows_are_in_the_files_that_are_opened_for_them(year: TableRows) -> None:
    assert len(year.newest("at").files) == 1
    assert year.files_since("at", START + 3 * DAY) == 5_000 - 3 * 24 * 60
    assert year.files_since("at", START + 30 * DAY) == 0


@pytest.mark.usefixtures("reading")
@pytest.mark.parametrize(
    ("condition", "sql", "expected"),
    [
        (ds.field("name") == "b", "name = 'b'", [5]),
        (ds.field("name").isin(["b", "c"]), "name IN ('b', 'c')", [3, 5]),
        (ds.field("name") > "b", "name > 'b'", [3, 6]),
        (ds.field("raw") == b"5", "raw = '5'::BLOB", [5]),
        (ds.field("of", "name") == "b", "\"of\".name = 'b'", [5]),
        ((ds.field("name") < "c") & (ds.field("n") > 1), "name < 'c' AND n > 1", [5]),
    ],
)
def test_texts_and_bytes_that_a_merge_wrote_are_found(
    tmp_path: Path, condition: Any, sql: str, expected: list[int]
) -> None:
    def named(**numbers: int) -> pa.Table:
        return pa.table(
            {
                "name": [*numbers],
                "n": pa.array([*numbers.values()], pa.int32()),
                "raw": [str(number).encode() for number in numbers.values()],
                "of": [{"name": name} for name in numbers],
            }
        )

    write_deltalake(tmp_path, named(a=1, b=2, c=3))
    merge = DeltaTable(tmp_path).merge(
        named(b=5, d=6), "new.name = old.name", source_alias="new", target_alias="old"
    )
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    rows = dataset_of(DeltaTable(tmp_path))
    [file] = rows.get_fragments()
    assert pa.types.is_string_view(file.physical_schema.field("name").type)

    found = [
        rows.to_table(columns=["n"], filter=condition),
        rows.of_files(rows.files).to_table(columns=["n"], filter=condition),
        rows.to_table(columns={"n": ds.field("n")}, filter=condition),
        rows.to_table(filter=condition),
    ]
    assert [sorted(each["n"].to_pylist()) for each in found] == [expected] * 4
    assert rows.count_rows(condition) == len(expected)
    asked = query(f"SELECT n FROM rows WHERE {sql} ORDER BY n", {"rows": rows})  # noqa: S608
    assert [row["n"] for row in asked] == expected
